/* SPDX-License-Identifier: MIT */
#ifndef RSB_PROVISION_H
#define RSB_PROVISION_H

/*
 * Brings a sandbox into being, back or to its end, in the caller's own process and under the
 * state lock. Each function does its job once; what to do when it fails is the caller's
 * business.
 */

#include "keeper/config.h"
#include "keeper/state.h"
#include "link/link.h"

/* What every call stands on. Borrowed. */
struct rsb_keeper_env {
	const struct rsb_config *config;
	char *const *environ;
	struct rsb_state_dir *dir;
	struct rsb_backend *backend;
};

/*
 * The backend that config and the key decide on. kind "e2b" or "local" forces it (a saved
 * sandbox's), NULL: by config.
 */
rsb_nodiscard int rsb_keeper_backend(const struct rsb_config *config, char *const *environ,
	const char *kind, struct rsb_backend **ret_backend, struct rsb_diag *diag);

struct rsb_keeper_create {
	const char *local_dir;    /* goes into the state; NULL: none */
	const char *mountpoint;   /* the same */
	uint64_t made_mountpoint; /* the same */
	uint64_t ttl_ns;          /* where the configuration has none */
	bool pause_on_expire;     /* the same */
};

/*
 * Creates a sandbox, or adopts the one that an interrupted create of this directory made,
 * deploys the sidecar, saves the state. The state lock must be held. -EDQUOT also for
 * sandbox.max.
 */
rsb_nodiscard int rsb_keeper_create(const struct rsb_keeper_env *env,
	const struct rsb_keeper_create *req, struct rsb_state *ret_state, struct rsb_diag *diag);
/*
 * The part of that for who does not save the state yet: asks for a sandbox as state says. The
 * intent is in the state then, and stays open until rsb_state_intent_end(); none may be open
 * before.
 */
rsb_nodiscard int rsb_keeper_request(const struct rsb_keeper_env *env,
	const struct rsb_keeper_create *how, struct rsb_state *state,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag);
/* What its host says of it, which changes nothing. -ENOENT with a sentence: it is gone. */
rsb_nodiscard int rsb_keeper_look(const struct rsb_keeper_env *env, const struct rsb_state *state,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag);
/*
 * The sandbox of the state runs (a paused one is resumed) and its life is at least the
 * state's ttl. 1: it was paused. -ENOENT with a sentence: it is gone.
 */
rsb_nodiscard int rsb_keeper_resume(const struct rsb_keeper_env *env, const struct rsb_state *state,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag);
/* Makes the sidecar listen, whatever was there. */
rsb_nodiscard int rsb_keeper_deploy(const struct rsb_keeper_env *env, const struct rsb_state *state,
	const struct rsb_sandbox *sandbox, struct rsb_diag *diag);
/*
 * A create of this directory was interrupted: ends the sandbox that it may have made, and forgets
 * about it. 0 also when there is nothing to forget.
 */
rsb_nodiscard int rsb_keeper_forget(const struct rsb_keeper_env *env, struct rsb_diag *diag);
/*
 * Kills it and removes its state. A sandbox that is gone already is fine. Takes the lock of
 * the daemon: -EBUSY if there is one, which would be left without a state.
 */
rsb_nodiscard int rsb_keeper_destroy(
	const struct rsb_keeper_env *env, const struct rsb_state *state, struct rsb_diag *diag);

/* Where the link connects to. The strings live in address, which the caller ends. */
struct rsb_keeper_target {
	struct rsb_backend_address address;
	char *url; /* ws(s)://.../rsb */
	struct rsb_link_target target;
};
rsb_nodiscard int rsb_keeper_target(const struct rsb_keeper_env *env, const struct rsb_state *state,
	const struct rsb_sandbox *sandbox, struct rsb_keeper_target *ret_target);
/* Into zeroed memory. -ENOMEM. */
rsb_nodiscard int rsb_keeper_target_copy(
	const struct rsb_keeper_target *target, struct rsb_keeper_target *ret_target);
void rsb_keeper_target_done(struct rsb_keeper_target *target);

#endif
