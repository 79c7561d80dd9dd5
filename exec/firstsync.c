/* SPDX-License-Identifier: MIT */
#include "exec/firstsync.h"

#include <errno.h>
#include <stdio.h>

#include "exec/synchook.h"
#include "exec/treesync.h"
#include "keeper/gitadopt.h"
#include "keeper/gitadvice.h"
#include "util/cleanup.h"
#include "util/str.h"

#define TIMEOUT_NS (60 * RSB_NSEC_PER_SEC)

static void
say_progress(void *arg, const struct rsb_sync_stats *stats)
{
	struct rsb_firstsync *sync = arg;

	rsb_progress_sync(&sync->progress, stats);
}

static void
say_notice(void *arg, const char *text)
{
	struct rsb_firstsync *sync = arg;

	rsb_progress_clear(&sync->progress);
	if (!sync->common->quiet)
		(void)fprintf(stderr, "rsb %s: %s\n", sync->verb->name, text);
}

/* Whose repository is synced in, his it is. */
static int
trust_own(const struct rsb_firstsync *sync)
{
	rsb_autofree char *file = rsb_str_path(rsb_state_path(sync->session->dir), "trust");

	return file ? rsb_gitadopt(sync->dir, file) : -ENOMEM;
}

int
rsb_firstsync_check(struct rsb_firstsync *sync, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_SYNC_PATTERNS_MAX };
	RSB_CLEANUP(rsb_ignore_freep) struct rsb_ignore *ignore = NULL;
	const struct rsb_sync tree = { .dir = sync->dir,
		.exclude = &sync->session->config.sync.exclude,
		.more = sync->exclude };
	const char *key = rsb_synchook_key(&sync->session->config, false);
	int r;

	/* What a command brings in is its own matter. */
	if (key)
		return sync->exclude[0]
			       ? rsb_diag_set(diag, -EINVAL, "--exclude means nothing to %s", key)
			       : 0;
	r = rsb_sync_patterns(&tree, &text, &ignore, diag);
	if (r >= 0)
		rsb_gitadvice(sync->dir, ignore, say_notice, sync);
	return r;
}

static int
pack(struct rsb_firstsync *sync, const struct rsb_sandbox *sandbox, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_keeper_target_done) struct rsb_keeper_target target = { 0 };
	RSB_CLEANUP(rsb_secret_done) struct rsb_secret key = { 0 };
	struct rsb_verb_session *session = sync->session;
	const struct rsb_sync tree = { .dir = sync->dir,
		.exclude = &session->config.sync.exclude,
		.more = sync->exclude,
		.progress = say_progress,
		.notice = say_notice,
		.tells_secrets = true,
		.arg = sync };
	struct rsb_sync_far far = {
		.sandbox_id = session->state.sandbox_id, .key = &key, .timeout_ns = TIMEOUT_NS
	};
	int r;

	r = rsb_state_key(session->dir, &key);
	if (r >= 0)
		r = rsb_keeper_target(&session->env, &session->state, sandbox, &target);
	if (r < 0)
		return r;
	far.target = &target.target;
	rsb_progress_begin(&sync->progress, sync->verb, sync->common, "syncing in");
	r = rsb_sync_in(&tree, &far, &sync->stats, diag);
	rsb_progress_end(&sync->progress, r);
	return r;
}

/* With what is the same on both sides every later sync begins. */
static int
note(struct rsb_firstsync *sync, struct rsb_diag *diag)
{
	struct rsb_treesync tree = { .verb = sync->verb,
		.common = sync->common,
		.session = sync->session,
		.exclude = sync->exclude };

	return rsb_treesync_note(&tree, diag);
}

int
rsb_firstsync_run(
	struct rsb_firstsync *sync, const struct rsb_sandbox *sandbox, struct rsb_diag *diag)
{
	int r;

	sync->by_command = rsb_synchook_key(&sync->session->config, false);
	r = sync->by_command ? 0 : pack(sync, sandbox, diag);
	if (r >= 0)
		r = trust_own(sync);
	return r < 0 || sync->by_command ? r : note(sync, diag);
}

int
rsb_firstsync_command(struct rsb_firstsync *sync, const char *socket, struct rsb_diag *diag)
{
	struct rsb_treesync tree = { .verb = sync->verb,
		.common = sync->common,
		.session = sync->session,
		.exclude = sync->exclude };
	int r;

	r = rsb_treesync_run(&tree, diag);
	if (r >= 0 && tree.remains)
		return rsb_diag_set(diag, -EIO, "%s ended with status 1", tree.key);
	if (r < 0)
		return r;
	rsb_treesync_settle(socket);
	r = rsb_verb_session_relock(sync->session, diag);
	return r < 0 ? r : note(sync, diag);
}
