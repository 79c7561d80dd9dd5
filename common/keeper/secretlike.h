/* SPDX-License-Identifier: MIT */
#ifndef RSB_SECRETLIKE_H
#define RSB_SECRETLIKE_H

/*
 * Which files of a project hold keys, tokens or passwords, as far as names can tell: whoever brings
 * them into a sandbox should know. Pure.
 */

#include <stdbool.h>

#include "util/buf.h"

/* Zeroed to begin with; rsb_secretlike_done() frees. */
struct rsb_secretlike {
	size_t n;
	struct rsb_buf named; /* the first of them, as they are shown */
};
void rsb_secretlike_done(struct rsb_secretlike *found);

/* Notes path, relative to the project, if it is one. A directory stands for all that is in it. */
void rsb_secretlike_look(struct rsb_secretlike *found, const char *path, bool is_dir);
/*
 * A file of this name holds credentials and nothing else, and is synced in neither direction. With
 * the letters of either case, since a file system may not tell them apart.
 */
#define RSB_SECRETLIKE_STAYS "it holds credentials, which are not synced"
bool rsb_secretlike_stays(const char *path);
/* A sentence, caller frees; NULL: there is none of them, or no memory. */
char *rsb_secretlike_say(const struct rsb_secretlike *found);

#endif
