/* SPDX-License-Identifier: MIT */
#include "keeper/recreate.h"

#include <errno.h>
#include <string.h>

#include "keeper/snaprestore.h"
#include "keeper/snapshot.h"
#include "util/cleanup.h"
#include "util/clock.h"

static int
restore(const struct rsb_keeper_env *env, const struct rsb_recreate *how,
	const struct rsb_state *state, const struct rsb_sync_far *far, uint64_t *ret_files,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf patterns = { .max = RSB_SNAPSHOT_PATTERNS_MAX };
	RSB_CLEANUP(rsb_haul_freep) struct rsb_haul *haul = NULL;
	struct rsb_snaprestore run = { .store = how->store,
		.at = how->at,
		.progress = how->progress,
		.notice = how->notice,
		.arg = how->arg };
	int r;

	r = rsb_snapshot_patterns(env->config, state->local_dir, &patterns, diag);
	if (r >= 0)
		r = rsb_haul_open(far, &haul, diag);
	if (r < 0)
		return r;
	run.patterns = rsb_buf_view(&patterns);
	return rsb_snaprestore_run(&run, haul, ret_files, diag);
}

/* From a sandbox that runs to one that has everything. */
static int
fill(const struct rsb_keeper_env *env, const struct rsb_recreate *how,
	const struct rsb_state *state, const struct rsb_sandbox *sandbox, uint64_t *ret_files,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_keeper_target_done) struct rsb_keeper_target target = { 0 };
	RSB_CLEANUP(rsb_secret_done) struct rsb_secret key = { 0 };
	struct rsb_sync_far far = { .target = &target.target,
		.sandbox_id = state->sandbox_id,
		.key = &key,
		.timeout_ns = how->timeout_ns };
	int r;

	r = rsb_keeper_deploy(env, state, sandbox, diag);
	if (r >= 0)
		r = rsb_state_key(env->dir, &key);
	if (r >= 0)
		r = rsb_keeper_target(env, state, sandbox, &target);
	return r < 0 ? r : restore(env, how, state, &far, ret_files, diag);
}

int
rsb_recreate(const struct rsb_keeper_env *env, const struct rsb_recreate *how,
	struct rsb_state *state, uint64_t *ret_files, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	/* Who made it by "rsb up" gets one that pauses, as then. */
	const struct rsb_keeper_create req = { .ttl_ns = state->ttl_ns,
		.pause_on_expire = state->local_dir[0] != '\0' };
	struct rsb_state next = *state;
	int r;

	next.created_ns = rsb_wall_ns();
	r = rsb_keeper_forget(env, diag);
	if (r >= 0)
		r = rsb_keeper_request(env, &req, &next, &sandbox, diag);
	if (r < 0)
		return r;
	(void)strcpy(next.sandbox_id, sandbox.id);
	r = fill(env, how, &next, &sandbox, ret_files, diag);
	if (r >= 0) {
		r = rsb_state_save(env->dir, &next);
		if (r < 0)
			(void)rsb_state_say_unwritten(env->dir, r, diag);
	}
	if (r < 0) {
		/* If even that fails, the intent is open still. */
		if (env->backend->ops->kill(env->backend, sandbox.id, NULL) >= 0)
			(void)rsb_state_intent_end(env->dir);
		return r;
	}
	*state = next;
	return rsb_state_intent_end(env->dir);
}
