/* SPDX-License-Identifier: MIT */
#ifndef RSB_UNTIL_H
#define RSB_UNTIL_H

/* Until when a sandbox lives that nobody keeps alive: it is said where it is left alone. */

#include "exec/verbs.h"
#include "util/localtime.h"

#define RSB_UNTIL_SIZE (RSB_LOCALTIME_SIZE + 64)

/*
 * " until 15:04, then it is paused", to go behind a sentence, as its host says now; "" when it does
 * not say that, or the sandbox is paused. Waits for the host as long as the backend does. -ENOENT:
 * the sandbox is gone; else 0.
 */
int rsb_until_ask(struct rsb_backend *backend, const struct rsb_state *state,
	char out[static RSB_UNTIL_SIZE]);
/* The same for who has no backend yet, and does not wait for long. */
int rsb_until_find(const struct rsb_state *state, const struct rsb_verb_common *common, char **env,
	char out[static RSB_UNTIL_SIZE]);

/*
 * The same way: what its host says, enum rsb_sandbox_state, and if asked when its time is over.
 * -ENOENT: there is no such any more.
 */
int rsb_until_state(const struct rsb_state *state, const struct rsb_verb_common *common, char **env,
	uint64_t *ret_end_ns);

#endif
