/* SPDX-License-Identifier: MIT */
#ifndef RSB_RECREATE_H
#define RSB_RECREATE_H

/*
 * Makes a sandbox of a snapshot, in the place of one that is gone or under another name. Nothing
 * says that it is there until all that was restored is verified: who is killed before leaves an
 * open intent, and the next one ends what that made and begins anew. So the snapshots stay, and the
 * state is what it was.
 */

#include "keeper/provision.h"
#include "keeper/snapstore.h"

struct rsb_recreate {
	const struct rsb_snapstore *store;
	size_t at;           /* of the store; checked by keeper/snaprestore.h */
	uint64_t timeout_ns; /* without any progress */
	/* May be NULL. As those of struct rsb_snaprestore. */
	void (*progress)(void *arg, uint64_t bytes);
	void (*notice)(void *arg, const char *text);
	void *arg;
};

/*
 * env: of the name that it gets, under the state lock. state: as it is to be made; it becomes that
 * of the new one. *ret_files: names that are back.
 */
rsb_nodiscard int rsb_recreate(const struct rsb_keeper_env *env, const struct rsb_recreate *how,
	struct rsb_state *state, uint64_t *ret_files, struct rsb_diag *diag);

#endif
