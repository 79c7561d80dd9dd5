/* SPDX-License-Identifier: MIT */
#include "exec/treesync.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "exec/run.h"
#include "exec/synchook.h"
#include "exec/way.h"
#include "util/cleanup.h"
#include "util/str.h"

#define SHOWN_MAX 4096u

/* What the words are for either direction. */
static const char *const keys[] = {
	[RSB_SYNCOUT_COMES] = "comes",
	[RSB_SYNCOUT_GOES] = "goes",
	[RSB_SYNCOUT_CONFLICTS] = "conflicts",
	[RSB_SYNCOUT_PARTLY] = "partly",
	[RSB_SYNCOUT_HELD] = "held",
	[RSB_SYNCOUT_MISSED] = "missed",
	[RSB_SYNCOUT_STAYS] = "stays",
};

static void
on_progress(void *arg, const struct rsb_sync_stats *stats)
{
	struct rsb_treesync *sync = arg;

	rsb_progress_sync(&sync->progress, stats);
}

static void
on_notice(void *arg, const char *text)
{
	struct rsb_treesync *sync = arg;

	rsb_progress_clear(&sync->progress);
	if (!sync->common->quiet)
		(void)fprintf(stderr, "rsb %s: %s\n", sync->verb->name, text);
}

static void
note_item(struct rsb_treesync *sync, enum rsb_syncout_item item, const char *path, const char *why)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *object = rsb_json_new_object();

	if (!sync->items[item])
		sync->items[item] = rsb_json_new_array();
	if (!object || !sync->items[item] || rsb_json_set_str(object, "path", path) < 0 ||
		(why && rsb_json_set_str(object, "why", why) < 0))
		return;
	(void)rsb_json_set(sync->items[item], NULL, rsb_steal(&object));
}

static void
on_item(void *arg, enum rsb_syncout_item item, const char *path, const char *why)
{
	struct rsb_treesync *sync = arg;
	const bool warns = item == RSB_SYNCOUT_CONFLICTS || item == RSB_SYNCOUT_MISSED ||
			   item == RSB_SYNCOUT_PARTLY || (item == RSB_SYNCOUT_HELD && !sync->again);
	char shown[SHOWN_MAX];

	/* Names are the sandbox's: no bytes of theirs reach a terminal. */
	rsb_str_escape(rsb_bytes_str(path), shown, sizeof shown);
	if (sync->common->json) {
		note_item(sync, item, shown, why);
		return;
	}
	if (sync->dry_run) {
		(void)printf("%s: %s%s%s\n", keys[item], shown, why ? ": " : "", why ? why : "");
	} else if (warns && !sync->common->quiet) {
		rsb_progress_clear(&sync->progress);
		(void)fprintf(stderr, "rsb %s: %s %s: %s\n", sync->verb->name, shown,
			item == RSB_SYNCOUT_CONFLICTS ? "is in conflict"
			: item == RSB_SYNCOUT_PARTLY  ? "comes only in part"
						      : "is left as it was",
			why ? why : "");
	}
}

static void
on_publishes(void *arg, uint64_t done, uint64_t all)
{
	struct rsb_treesync *sync = arg;

	if (sync->guard && rsb_syncguard_publishes(sync->guard, done, all)) {
		rsb_progress_clear(&sync->progress);
		(void)fprintf(stderr,
			"rsb %s: finishing: %llu of %llu; it cannot be interrupted now\n",
			sync->verb->name, (unsigned long long)done, (unsigned long long)all);
	}
}

static int
go(struct rsb_treesync *sync, bool note, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_way_done) struct rsb_way way = { 0 };
	const struct rsb_state *state = &sync->session->state;
	const struct rsb_sync tree = { .dir = state->local_dir,
		.exclude = &sync->session->config.sync.exclude,
		.more = sync->exclude,
		.progress = on_progress,
		.notice = on_notice,
		.arg = sync };
	const struct rsb_syncout what = { .sync = &tree,
		.state_dir = rsb_state_path(sync->session->dir),
		.name = state->name,
		.dry_run = sync->dry_run,
		.delete_many = sync->delete_many,
		.trust_git = sync->trust_git,
		.max = sync->session->config.sync.out_max,
		.item = on_item,
		.publishes = on_publishes };
	int r;

	r = rsb_way_find(sync->session, &way, diag);
	if (r < 0)
		return r;
	rsb_progress_begin(&sync->progress, sync->verb, sync->common,
		note        ? "looking at what came"
		: sync->out ? "syncing out"
			    : "syncing in");
	if (note)
		r = rsb_sync_note(&what, &way.far, diag);
	else
		r = sync->out ? rsb_sync_out(&what, &way.far, &sync->stats, diag)
			      : rsb_sync_update(&what, &way.far, &sync->stats, diag);
	rsb_progress_end(&sync->progress, r);
	return r;
}

/* Others may change the sandbox meanwhile, as what the command calls does; nobody else syncs. */
static int
go_by_command(struct rsb_treesync *sync, struct rsb_diag *diag)
{
	const struct rsb_synchook hook = { .config = &sync->session->config,
		.state = &sync->session->state,
		.state_dir = rsb_state_path(sync->session->dir),
		.env = (char **)sync->session->env.environ,
		.out = sync->out };
	int r;

	if (sync->delete_many || sync->trust_git || (sync->exclude && sync->exclude[0]))
		return rsb_diag_set(diag, -EINVAL,
			"--delete-many, --trust-git and --exclude mean nothing to %s; "
			"'rsb sync --builtin' does without it",
			sync->key);
	rsb_verb_session_unlock(sync->session);
	if (sync->guard)
		rsb_syncguard_by_command(sync->guard);
	rsb_progress_begin(&sync->progress, sync->verb, sync->common,
		sync->out ? "syncing out by sync.out_command" : "syncing in by sync.in_command");
	r = rsb_synchook_run(&hook, diag);
	rsb_progress_end(&sync->progress, r);
	sync->remains = r > 0;
	return rsb_min(r, 0);
}

int
rsb_treesync_run(struct rsb_treesync *sync, struct rsb_diag *diag)
{
	const struct rsb_state *state = &sync->session->state;

	if (!state->local_dir[0])
		return rsb_diag_set(diag, -EINVAL,
			"no directory belongs to %s: it was not made by 'rsb up'", state->name);
	sync->key = sync->builtin || sync->dry_run
			    ? NULL
			    : rsb_synchook_key(&sync->session->config, sync->out);
	return sync->key ? go_by_command(sync, diag) : go(sync, false, diag);
}

int
rsb_treesync_note(struct rsb_treesync *sync, struct rsb_diag *diag)
{
	return go(sync, true, diag);
}

void
rsb_treesync_done(struct rsb_treesync *sync)
{
	for (size_t i = 0; i < RSB_SYNCOUT_ITEM_N; i++)
		rsb_json_free(sync->items[i]);
}

bool
rsb_treesync_conflicts(const struct rsb_treesync *sync)
{
	return sync->remains || sync->stats.items[RSB_SYNCOUT_CONFLICTS] > 0;
}

static int
say_json(const struct rsb_treesync *sync)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };

	rsb_report_init(&report);
	rsb_report_sandbox(&report, &sync->session->state);
	rsb_report_str(&report, "dir", sync->session->state.local_dir);
	rsb_report_str(&report, "direction", sync->out ? "out" : "in");
	rsb_report_bool(&report, "dry_run", sync->dry_run);
	rsb_report_str(&report, "command", sync->key ? sync->key : "");
	rsb_report_number(&report, "packed", sync->stats.packed);
	for (size_t i = 0; i < RSB_SYNCOUT_ITEM_N; i++)
		rsb_report_json(&report, keys[i],
			sync->items[i] ? rsb_json_ref(sync->items[i]) : rsb_json_new_array());
	return rsb_report_print(&report);
}

int
rsb_treesync_say(const struct rsb_treesync *sync)
{
	const uint64_t *n = sync->stats.items;
	const int remains = rsb_treesync_conflicts(sync) || n[RSB_SYNCOUT_MISSED] > 0;
	int r = 0;

	if (sync->common->json)
		r = say_json(sync);
	else if (sync->key && !sync->common->quiet)
		(void)printf("%s %s by %s%s\n", sync->session->state.name,
			sync->out ? "synced out" : "synced in", sync->key,
			sync->remains ? "; conflicts remain" : "");
	else if (!sync->common->quiet && !sync->dry_run)
		(void)printf("%s %s: %llu changed, %llu removed, %llu in conflict, %llu left as "
			     "they were\n",
			sync->session->state.name, sync->out ? "synced out" : "synced in",
			(unsigned long long)n[RSB_SYNCOUT_COMES] + n[RSB_SYNCOUT_PARTLY],
			(unsigned long long)n[RSB_SYNCOUT_GOES],
			(unsigned long long)n[RSB_SYNCOUT_CONFLICTS],
			(unsigned long long)n[RSB_SYNCOUT_HELD] + n[RSB_SYNCOUT_MISSED]);
	return r < 0 ? r : remains;
}

void
rsb_treesync_settle(const char *socket)
{
	char *const argv[] = { (char *)"true", NULL };
	const char *const env[] = { NULL };
	const struct rsb_run run = { .socket = socket,
		.argv = argv,
		.env = env,
		.cwd = "",
		.no_stdin = true,
		.no_signals = true };
	struct rsb_run_result result;
	struct rsb_diag diag = { 0 };

	if (access(socket, F_OK) == 0)
		rsb_run(&run, &result, &diag);
}
