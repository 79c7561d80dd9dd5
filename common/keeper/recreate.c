/* SPDX-License-Identifier: MIT */
#include "keeper/recreate.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "keeper/manifest.h"
#include "keeper/snaprestore.h"
#include "keeper/snapshot.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/localtime.h"

/* What is brought back: number at of store. */
struct chosen {
	struct rsb_snapstore *store;
	size_t at;
};

static void
say(const struct rsb_recreate *how, const char *text)
{
	if (how->notice)
		how->notice(how->arg, text);
}

static int
set_haul(const struct rsb_recreate *how, struct rsb_haul *haul)
{
	return how->haul ? how->haul(how->arg, haul) : 0;
}

static int
restore(const struct rsb_keeper_env *env, struct rsb_recreate *how, const struct chosen *chosen,
	const struct rsb_state *state, const struct rsb_sync_far *far, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf patterns = { .max = RSB_SNAPSHOT_PATTERNS_MAX };
	RSB_CLEANUP(rsb_haul_freep) struct rsb_haul *haul = NULL;
	struct rsb_snaprestore run = { .store = chosen->store,
		.at = chosen->at,
		.progress = how->progress,
		.notice = how->notice,
		.arg = how->arg };
	int r;

	r = rsb_snapshot_patterns(env->config, state->local_dir, &patterns, diag);
	if (r >= 0)
		r = rsb_haul_new(far, &haul);
	if (r < 0)
		return r;
	run.patterns = rsb_buf_view(&patterns);
	r = set_haul(how, haul);
	if (r >= 0)
		r = rsb_haul_connect(haul, diag);
	if (r >= 0)
		r = rsb_snaprestore_run(&run, haul, &how->files, diag);
	(void)set_haul(how, NULL);
	return r;
}

/* From a sandbox that runs to one that has everything. */
static int
fill(const struct rsb_keeper_env *env, struct rsb_recreate *how, const struct chosen *chosen,
	const struct rsb_state *state, const struct rsb_sandbox *sandbox, struct rsb_diag *diag)
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
	return r < 0 ? r : restore(env, how, chosen, state, &far, diag);
}

static int
make(const struct rsb_keeper_env *env, struct rsb_recreate *how, const struct chosen *chosen,
	struct rsb_state *state, struct rsb_diag *diag)
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
	r = fill(env, how, chosen, &next, &sandbox, diag);
	/* What was synced since the snapshot, and is not in it, was deleted by nobody. */
	if (r >= 0)
		r = rsb_manifest_rewind(rsb_state_path(env->dir),
			rsb_snapstore_at(chosen->store, chosen->at)->taken_ns);
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

static int
choose(const struct rsb_recreate *how, struct chosen *chosen, struct rsb_diag *diag)
{
	int i, r;

	r = rsb_snapstore_open(how->from, how->store_ns, &chosen->store, diag);
	if (r < 0)
		return r;
	if (!rsb_snapstore_count(chosen->store))
		return !rsb_snapstore_was_damaged(chosen->store)
			       ? -ENOENT
			       : rsb_diag_set(diag, -EBADMSG,
					 "the list of its snapshots is damaged; 'rsb snapshot remove "
					 "--all' gives them up");
	if (how->number) {
		i = rsb_snapstore_find(chosen->store, how->number, diag);
		r = i < 0 ? i : rsb_snaprestore_check(chosen->store, (size_t)i, diag);
	} else {
		i = rsb_snaprestore_newest(chosen->store, how->notice, how->arg, diag);
		r = i == -ENOENT ? -EBADMSG : i;
	}
	if (r < 0)
		return r;
	chosen->at = (size_t)i;
	return 0;
}

/* What is told is what everybody has to know who worked there. */
static void
tell(const struct rsb_keeper_env *env, const struct rsb_recreate *how,
	const struct rsb_snappoint *point)
{
	/* One beside that which the snapshots are of, which loses nothing by it. */
	const bool beside = strcmp(how->from, rsb_state_path(env->dir)) != 0;
	char when[RSB_LOCALTIME_SIZE];
	struct rsb_diag text;

	rsb_localtime(point->taken_ns, rsb_wall_ns(), when);
	(void)rsb_diag_set(&text, 0, "%" PRIu64 " %s%s as %s at %s (snapshot %" PRIu64 "%s)%s",
		how->files, how->files == 1 ? "file or directory is" : "files and directories are",
		beside ? "" : " back", how->files == 1 ? "it was" : "they were", when,
		point->number, point->fuzzy ? ", taken while commands ran or files changed" : "",
		beside ? "" : "; what changed there later is lost");
	if (how->restored) {
		how->restored(how->arg, text.text);
		return;
	}
	say(how, text.text);
	rsb_state_event(env->dir, "restored", text.text);
}

int
rsb_recreate(const struct rsb_keeper_env *env, struct rsb_recreate *how, struct rsb_state *state,
	struct rsb_diag *diag)
{
	struct chosen chosen = { .store = NULL };
	struct rsb_snappoint point;
	int r;

	r = choose(how, &chosen, diag);
	if (r >= 0) {
		point = *rsb_snapstore_at(chosen.store, chosen.at);
		r = make(env, how, &chosen, state, diag);
		/* That it is gone is not what fails here. */
		if (r == -ENOENT)
			r = rsb_diag_set(diag, -EIO, "%s", rsb_diag_text(diag, r));
	}
	rsb_snapstore_close(chosen.store);
	if (r < 0)
		return r;
	how->taken_ns = point.taken_ns;
	tell(env, how, &point);
	return 0;
}
