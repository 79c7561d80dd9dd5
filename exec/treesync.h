/* SPDX-License-Identifier: MIT */
#ifndef RSB_TREESYNC_H
#define RSB_TREESYNC_H

/*
 * A sync as several verbs need it: the way to the sandbox, what is told meanwhile, and the
 * answer.
 */

#include "exec/progress.h"
#include "exec/report.h"
#include "exec/syncguard.h"
#include "exec/verbs.h"
#include "keeper/syncin.h"

struct rsb_treesync {
	const struct rsb_verb *verb;
	const struct rsb_verb_common *common;
	struct rsb_verb_session *session; /* opened by the caller */
	const char *const *exclude;       /* NULL-terminated; may be NULL */
	bool out;                         /* else in */
	bool builtin;                     /* whatever command is set */
	bool dry_run;
	bool delete_many;
	bool trust_git;
	struct rsb_syncguard *guard; /* may be NULL */
	bool again;                  /* what stays by a rule was told before */
	/* Filled. */
	const char *key; /* of the command that did it; NULL: we did */
	bool remains;    /* it says that there are conflicts */
	struct rsb_syncout_stats stats;
	struct rsb_json *items[RSB_SYNCOUT_ITEM_N]; /* arrays, with --json */
	struct rsb_progress progress;
};

/*
 * The sandbox runs, or is brought back for it. Under the session's locks. Does what the members
 * say; tells conflicts and what is held back on stderr, with dry_run everything on standard output.
 * Where a command is set that does it instead, and builtin and dry_run are not, the session is
 * unlocked for that, and stays so.
 */
rsb_nodiscard int rsb_treesync_run(struct rsb_treesync *sync, struct rsb_diag *diag);
/* Notes what a first sync in brought there, as the beginning of all others. */
rsb_nodiscard int rsb_treesync_note(struct rsb_treesync *sync, struct rsb_diag *diag);
void rsb_treesync_done(struct rsb_treesync *sync);
/* Whether there are any. */
bool rsb_treesync_conflicts(const struct rsb_treesync *sync);
/*
 * What came of it on standard output; 0, or 1 with conflicts or when something could not be
 * done. Negative errno: it was not written.
 */
int rsb_treesync_say(const struct rsb_treesync *sync);
/*
 * Before and after, with a mount: what was written in it is in the sandbox, and it sees what
 * changed there. Without a daemon nothing is to be done.
 */
void rsb_treesync_settle(const char *socket);

#endif
