/* SPDX-License-Identifier: MIT */
#ifndef RSB_WAY_H
#define RSB_WAY_H

/* The way to a sandbox's files for a verb: a link of its own, beside that of a daemon. */

#include "exec/verbs.h"
#include "keeper/sync.h"

struct rsb_way {
	struct rsb_keeper_target target;
	struct rsb_secret key;
	struct rsb_sync_far far;
};

/* The sandbox runs, or is brought back for it. Under the session's lock, and for its life. */
rsb_nodiscard int rsb_way_find(
	struct rsb_verb_session *session, struct rsb_way *way, struct rsb_diag *diag);
void rsb_way_done(struct rsb_way *way); /* zeroed memory is fine */
/* At the end: what runs for that alone is paused again, or it is told that it is not. */
void rsb_way_rest(struct rsb_verb_session *session, const struct rsb_verb *verb);

#endif
