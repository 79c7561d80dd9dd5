/* SPDX-License-Identifier: MIT */
#ifndef RSB_KEEPER_H
#define RSB_KEEPER_H

/*
 * Keeps one sandbox alive and the link to it up. The first half is plain functions, for verbs
 * in their own process (under the state lock, without a daemon); the second is the daemon's
 * keeper thread, the only one there that talks to the control plane. What to do when is
 * decided in keeper/recover.h; here it is done.
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
	const char *local_dir;  /* goes into the state; NULL: none */
	const char *mountpoint; /* the same */
	uint64_t ttl_ns;        /* where the configuration has none */
	bool pause_on_expire;   /* the same */
};

/*
 * Creates a sandbox, or adopts the one that an interrupted create of this directory made,
 * deploys the sidecar, saves the state. The state lock must be held. -EDQUOT also for
 * sandbox.max.
 */
rsb_nodiscard int rsb_keeper_create(const struct rsb_keeper_env *env,
	const struct rsb_keeper_create *req, struct rsb_state *ret_state, struct rsb_diag *diag);
/*
 * The sandbox of the state runs (a paused one is resumed) and its life is at least the
 * state's ttl. -ENOENT: it is gone.
 */
rsb_nodiscard int rsb_keeper_resume(const struct rsb_keeper_env *env, const struct rsb_state *state,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag);
/* Makes the sidecar listen, whatever was there. */
rsb_nodiscard int rsb_keeper_deploy(const struct rsb_keeper_env *env, const struct rsb_state *state,
	const struct rsb_sandbox *sandbox, struct rsb_diag *diag);
/* Kills it and removes its state. A sandbox that is gone already is fine. */
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
void rsb_keeper_target_done(struct rsb_keeper_target *target);

/* ---- the daemon's thread ---- */

enum rsb_keeper_state {
	RSB_KEEPER_STARTING, /* not yet live for the first time */
	RSB_KEEPER_LIVE,
	RSB_KEEPER_SUSPECT,
	RSB_KEEPER_RECONNECTING,
	RSB_KEEPER_RESUMING,   /* it was paused */
	RSB_KEEPER_RESTARTING, /* the sidecar was gone */
	RSB_KEEPER_LOST,       /* needs the user; all calls fail with EIO */
	RSB_KEEPER_STOPPED,
};
const char *rsb_keeper_state_name(enum rsb_keeper_state state);

struct rsb_keeper;

struct rsb_keeper_config {
	/* What it points to lives as long as the keeper; the backend is the keeper's alone. */
	struct rsb_keeper_env env;
	const struct rsb_state *state; /* copied */
	struct rsb_link *link;         /* borrowed; lives longer than the keeper */
	/* On the keeper's thread; may be NULL. text: one sentence. */
	void (*event)(void *arg, const char *kind, const char *text);
	void *arg;
};

/*
 * Starts the thread, which connects the link. The owner of the link passes its state callback
 * on by rsb_keeper_link_state().
 */
rsb_nodiscard int rsb_keeper_start(
	const struct rsb_keeper_config *config, struct rsb_keeper **ret_keeper);
/* {any} As the callback of struct rsb_link_ops. Does not wait. */
void rsb_keeper_link_state(
	struct rsb_keeper *keeper, enum rsb_link_state state, int reason, bool new_epoch);
/* {any} */
enum rsb_keeper_state rsb_keeper_state(struct rsb_keeper *keeper);
/* Waits until LIVE (0) or LOST (its errno and sentence). -ETIMEDOUT. */
rsb_nodiscard int rsb_keeper_wait(
	struct rsb_keeper *keeper, uint64_t timeout_ns, struct rsb_diag *diag);

enum rsb_keeper_end { RSB_KEEPER_END_LEAVE, RSB_KEEPER_END_PAUSE, RSB_KEEPER_END_KILL };
/*
 * Ends the thread, then does with the sandbox what end says (KILL removes the state too).
 * Frees keeper in any case.
 */
rsb_nodiscard int rsb_keeper_stop(
	struct rsb_keeper *keeper, enum rsb_keeper_end end, struct rsb_diag *diag);

#endif
