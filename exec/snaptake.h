/* SPDX-License-Identifier: MIT */
#ifndef RSB_SNAPTAKE_H
#define RSB_SNAPTAKE_H

/* A snapshot as verbs take one: by a link of their own, whether a daemon runs or not. */

#include "exec/daemon.h"
#include "exec/progress.h"
#include "exec/verbs.h"
#include "keeper/snapshot.h"

#define RSB_SNAPTAKE_STORE_NS (60 * RSB_NSEC_PER_SEC) /* for who takes or restores one now */

struct rsb_snaptake {
	const struct rsb_verb *verb;
	const struct rsb_verb_common *common;
	const struct rsb_where *where;
	struct rsb_verb_session *session; /* opened by the caller */
	const char *why;
	bool whole; /* as in struct rsb_snapshot */
	/* Filled. */
	struct rsb_daemon_look look; /* at the beginning */
	struct rsb_progress progress;
};

/* The sandbox runs, or is brought back for it. 0 and 1 as rsb_snapshot_take(). */
rsb_nodiscard int rsb_snaptake_run(
	struct rsb_snaptake *take, struct rsb_snappoint *ret_point, struct rsb_diag *diag);

#endif
