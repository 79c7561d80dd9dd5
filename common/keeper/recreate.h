/* SPDX-License-Identifier: MIT */
#ifndef RSB_RECREATE_H
#define RSB_RECREATE_H

/*
 * Makes a sandbox of a snapshot, in the place of one that is gone or under another name. Nothing
 * says that it is there until all that was restored is verified: who is killed before leaves an
 * open intent, and the next one ends what that made and begins anew. So the snapshots stay, and the
 * state is what it was.
 */

#include "keeper/haul.h"
#include "keeper/provision.h"

struct rsb_recreate {
	const char *from;    /* path of the state directory that has the snapshots */
	uint64_t store_ns;   /* to wait for somebody else who uses them */
	uint64_t number;     /* which; 0: the newest that is whole */
	uint64_t timeout_ns; /* without any progress */
	/* May be NULL. As those of struct rsb_snaprestore. */
	void (*progress)(void *arg, uint64_t bytes);
	void (*notice)(void *arg, const char *text);
	/* Which moment came back, once. NULL: to notice and into the event log. */
	void (*restored)(void *arg, const char *text);
	/* May be NULL. What rsb_haul_abort() ends, from now on; NULL: it is over. Negative: no. */
	int (*haul)(void *arg, struct rsb_haul *haul);
	void *arg;
	/* Filled. */
	uint64_t files; /* names that are back */
	uint64_t taken_ns;
};

/*
 * env: of the name that it gets, under the state lock. state: as it is to be made; it becomes that
 * of the new one. -ENOENT: there are no snapshots, without a sentence; -EBADMSG: none is whole.
 */
rsb_nodiscard int rsb_recreate(const struct rsb_keeper_env *env, struct rsb_recreate *how,
	struct rsb_state *state, struct rsb_diag *diag);

#endif
