/* SPDX-License-Identifier: MIT */
#ifndef RSB_FIRSTSYNC_H
#define RSB_FIRSTSYNC_H

/* What 'rsb up' brings into a sandbox that has nothing yet, and what is noted of that. */

#include "exec/progress.h"
#include "exec/verbs.h"

struct rsb_firstsync {
	const struct rsb_verb *verb;
	const struct rsb_verb_common *common;
	struct rsb_verb_session *session;
	const char *dir;
	const char *const *exclude; /* NULL-terminated */
	/* Filled. */
	bool by_command; /* of rsb.conf(5), which the mount comes first for */
	struct rsb_sync_stats stats;
	struct rsb_progress progress;
};

/*
 * Whether what is to be left out can be told, and what the user should know of that, before there
 * is a sandbox.
 */
rsb_nodiscard int rsb_firstsync_check(struct rsb_firstsync *sync, struct rsb_diag *diag);
/* Before it is mounted. Under the session's locks. */
rsb_nodiscard int rsb_firstsync_run(
	struct rsb_firstsync *sync, const struct rsb_sandbox *sandbox, struct rsb_diag *diag);
/* When it is, by_command. The session is unlocked meanwhile, and on failure stays so. */
rsb_nodiscard int rsb_firstsync_command(
	struct rsb_firstsync *sync, const char *socket, struct rsb_diag *diag);

#endif
