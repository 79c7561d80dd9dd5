/* SPDX-License-Identifier: MIT */
#ifndef RSB_ARCHIVIST_H
#define RSB_ARCHIVIST_H

/*
 * Takes snapshots while a daemon runs, on a thread and by a link of its own: nobody waits for it.
 * It asks nothing of the control plane, and so keeps no sandbox alive.
 */

#include "keeper/config.h"
#include "keeper/provision.h"
#include "keeper/snapdue.h"

struct rsb_archivist;

struct rsb_archivist_config {
	/* All outlive the archivist. */
	const struct rsb_config *config;
	const char *state_dir;
	const char *local_dir; /* as that of struct rsb_state */
	const struct rsb_secret *key;
	/* {archivist} Which sandbox it is now, and where; *ret_target is the archivist's. */
	int (*target)(void *arg, struct rsb_keeper_target *ret_target,
		char ret_id[static RSB_SANDBOX_ID_MAX + 1]);
	/* {archivist} What the user should know, a sentence, once. */
	void (*say)(void *arg, const char *text);
	void *arg;
};

rsb_nodiscard int rsb_archivist_new(
	const struct rsb_archivist_config *config, struct rsb_archivist **ret_archivist);
/* {any} Every second or oftener: a snapshot that nobody tells of anything counts as fuzzy. */
void rsb_archivist_tell(struct rsb_archivist *archivist, const struct rsb_snapdue_news *news);
/* What is being taken is given up. NULL is fine. */
void rsb_archivist_free(struct rsb_archivist *archivist);
RSB_DEFINE_CLEANUP(struct rsb_archivist *, rsb_archivist_free)

#endif
