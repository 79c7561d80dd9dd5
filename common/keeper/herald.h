/* SPDX-License-Identifier: MIT */
#ifndef RSB_HERALD_H
#define RSB_HERALD_H

/*
 * Runs notify.command for events, one after another, on a thread of its own: whoever tells of
 * one never waits.
 */

#include "util/cleanup.h"
#include "util/macro.h"

#define RSB_HERALD_WAITING_MAX 64u /* then the oldest are left out */

struct rsb_herald;

struct rsb_herald_config {
	/* All copied but env. */
	const char *command;
	const char *sandbox; /* its name */
	const char *sandbox_id;
	const char *dir;     /* that was synced in; empty: none */
	uint64_t timeout_ns; /* for one */
	char *const *env;    /* as environ(7); outlives the herald */
};

rsb_nodiscard int rsb_herald_new(
	const struct rsb_herald_config *config, struct rsb_herald **ret_herald);
/* {any} text: a sentence. */
void rsb_herald_tell(struct rsb_herald *herald, const char *kind, const char *text);
/* Those that wait are left out, the one that runs is killed. NULL is fine. */
void rsb_herald_free(struct rsb_herald *herald);
RSB_DEFINE_CLEANUP(struct rsb_herald *, rsb_herald_free)

#endif
