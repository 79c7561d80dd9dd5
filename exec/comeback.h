/* SPDX-License-Identifier: MIT */
#ifndef RSB_COMEBACK_H
#define RSB_COMEBACK_H

/* A sandbox that is gone comes back from a snapshot of it; several verbs do that. */

#include "exec/progress.h"
#include "exec/verbs.h"

struct rsb_comeback {
	const struct rsb_verb *verb;
	const struct rsb_verb_common *common;
	struct rsb_verb_session
		*session; /* of the name that it gets; its state is as it is to be made */
	const char *from; /* path of the state directory that has the snapshots */
	uint64_t number;  /* which; 0: the newest that is whole */
	/* Filled. */
	uint64_t files;
	uint64_t taken_ns;
	struct rsb_progress progress;
	bool began; /* progress */
};

/*
 * Tells on stderr and in the event log which moment it is, once. -ENOENT: it has no snapshots,
 * without a sentence; else with one, and what there was stays.
 */
rsb_nodiscard int rsb_comeback_run(struct rsb_comeback *back, struct rsb_diag *diag);
/*
 * rsb_keeper_resume() of the session's sandbox, or what comes back of it. -ENOENT, with its
 * sentence: it is gone, and has no snapshots.
 */
rsb_nodiscard int rsb_comeback_resume(const struct rsb_verb *verb,
	const struct rsb_verb_common *common, struct rsb_verb_session *session,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag);

#endif
