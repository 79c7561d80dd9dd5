/* SPDX-License-Identifier: MIT */
#include "exec/snaptake.h"

#include <stdio.h>
#include <time.h>

#include "exec/way.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define QUIET_NS RSB_NSEC_PER_SEC
#define LOOK_NS (20 * 1000 * 1000L)

static void
on_progress(void *arg, uint64_t bytes)
{
	struct rsb_snaptake *take = arg;

	rsb_progress_sync(&take->progress, &(struct rsb_sync_stats){ .bytes = bytes });
}

/* One that has just ended may be counted for a moment more. */
static int
wait_quiet(struct rsb_snaptake *take, struct rsb_diag *diag)
{
	const uint64_t end_ns = rsb_now_ns() + QUIET_NS;
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	int r;

	while ((r = rsb_daemon_look(take->where, &take->look, diag)) >= 0 && take->look.commands &&
		rsb_now_ns() < end_ns)
		(void)nanosleep(&pause, NULL); /* an early end is fine */
	return r;
}

static bool
is_busy(void *arg)
{
	const struct rsb_snaptake *take = arg;
	struct rsb_daemon_look look;

	/* Who cannot be asked may do anything. */
	return take->look.commands || rsb_daemon_look(take->where, &look, NULL) < 0 ||
	       look.commands || look.generation != take->look.generation;
}

static int
fetch(struct rsb_snaptake *take, struct rsb_snappoint *ret_point, struct rsb_diag *diag)
{
	struct rsb_verb_session *session = take->session;
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf patterns = { .max = RSB_SNAPSHOT_PATTERNS_MAX };
	RSB_CLEANUP(rsb_way_done) struct rsb_way way = { 0 };
	RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
	RSB_CLEANUP(rsb_haul_freep) struct rsb_haul *haul = NULL;
	struct rsb_snapshot snapshot = { .sandbox_id = session->state.sandbox_id,
		.max = session->config.sync.snapshot_max,
		.why = take->why,
		.whole = take->whole,
		.busy = is_busy,
		.progress = on_progress,
		.arg = take };
	int r;

	r = rsb_way_find(session, &way, diag);
	if (r >= 0)
		r = rsb_snapstore_open(
			rsb_state_path(session->dir), RSB_SNAPTAKE_STORE_NS, &store, diag);
	if (r >= 0)
		r = rsb_snapshot_patterns(
			&session->config, session->state.local_dir, &patterns, diag);
	way.far.whole_ns = RSB_SNAPSHOT_WHOLE_NS;
	if (r >= 0)
		r = rsb_haul_open(&way.far, &haul, diag);
	if (r < 0)
		return r;
	if (rsb_snapstore_was_damaged(store))
		(void)fprintf(stderr,
			"rsb %s: the list of snapshots was damaged: a new one is begun\n",
			take->verb->name);
	snapshot.store = store;
	snapshot.patterns = rsb_buf_view(&patterns);
	return rsb_snapshot_take(&snapshot, haul, ret_point, diag);
}

int
rsb_snaptake_run(struct rsb_snaptake *take, struct rsb_snappoint *ret_point, struct rsb_diag *diag)
{
	int r = wait_quiet(take, diag);

	if (r < 0)
		return r;
	rsb_progress_begin(&take->progress, take->verb, take->common, "taking a snapshot");
	r = fetch(take, ret_point, diag);
	rsb_progress_end(&take->progress, r);
	return r;
}
