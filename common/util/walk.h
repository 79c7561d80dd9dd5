/* SPDX-License-Identifier: MIT */
#ifndef RSB_WALK_H
#define RSB_WALK_H

/*
 * What is below a directory, without following links, staying on its file system: a directory
 * before what is in it, names by their bytes. That is the order of rsb_walk_compare().
 */

#include <sys/stat.h>

#include "util/ignore.h"

#define RSB_WALK_DIR_MAX ((size_t)1 << 20) /* names in one directory */
#define RSB_WALK_PATH_MAX 4095u

struct rsb_walk_entry {
	const char *path; /* relative to the root */
	struct stat st;
	const char *target; /* of a symbolic link; else "" */
	int error;          /* of a directory whose contents could not be listed; else 0 */
};

/*
 * Calls fn for each that ignore (may be NULL) leaves, except the root itself. Other results of fn
 * than 0 end the walk and are returned. What goes away meanwhile is left out. Fails only where the
 * root cannot be listed, or with -ENOMEM.
 */
rsb_nodiscard int rsb_walk(int root_fd, const struct rsb_ignore *ignore,
	int (*fn)(void *arg, const struct rsb_walk_entry *entry), void *arg);

/* As strcmp(3), in the order of a walk. */
int rsb_walk_compare(const char *a, const char *b);

#endif
