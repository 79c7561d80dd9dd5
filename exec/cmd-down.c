/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "exec/daemon.h"
#include "exec/inuse.h"
#include "exec/outcome.h"
#include "exec/report.h"
#include "exec/snaptake.h"
#include "exec/syncguard.h"
#include "exec/synchook.h"
#include "exec/treesync.h"
#include "exec/until.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "keeper/stage.h"
#include "util/cleanup.h"

struct down {
	const struct rsb_verb *verb;
	const struct rsb_verb_common *common;
	int how; /* enum rsb_config_down, -1: by configuration */
	bool force;
	bool no_sync;
	bool delete_many;
	bool cut_off;
	bool is_mounted;
	bool with_mount; /* it is not taken away yet */
	bool by_command; /* what syncs was one, which is run once */
	bool told;       /* what does not come out by a rule */
	bool is_gone;    /* it was already, which does no harm by force */
	bool is_out;     /* what changed in it is in the directory that it came from */
	uint64_t changed;
	uint64_t removed;
	char until[RSB_UNTIL_SIZE]; /* it runs on */
	struct rsb_syncguard guard;
};

/* For the control plane, where the way to the sandbox is cut and the end is forced. */
#define FORCED_NS (5 * RSB_NSEC_PER_SEC)

static int
open_session(const struct down *down, const struct rsb_where *where, char **env,
	struct rsb_verb_session *session, struct rsb_diag *diag)
{
	struct rsb_verb_session_of of = { .root = where->root,
		.name = where->state.name,
		.project_dir = where->state.local_dir,
		.sync = true,
		.request_max_ns = down->force && down->cut_off ? FORCED_NS : 0 };

	return rsb_verb_session_open(session, &of, down->common, env, diag);
}

/* ---- what changed in it comes out first ---- */

/* 0: nothing could come, it is paused to stay so. -ENOENT with a sentence: it is gone. */
static int
has_something(const struct down *down, const struct rsb_where *where,
	const struct rsb_verb_session *session, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_backend *backend = session->backend;
	const bool ends = down->how == RSB_CONFIG_DOWN_KILL;
	int r = backend->ops->get(backend, session->state.sandbox_id, &sandbox, NULL);

	if (r == -ENOENT)
		return rsb_state_say_gone(where->root, where->state.name, diag);
	return r < 0 || ends || sandbox.state != RSB_SANDBOX_PAUSED;
}

static int
say_stays(const struct rsb_where *where, int r, struct rsb_diag *diag)
{
	const char *name = where->state.name;
	struct rsb_diag why = *diag;

	return rsb_diag_set(diag, r,
		"%s; the sandbox %s stays: 'rsb down --no-sync %s' leaves out the sync",
		rsb_diag_text(&why, r), name, name);
}

/* Forced, it is told and is no reason to stay. 1: there are conflicts, which were told. */
static int
judge(struct down *down, const struct rsb_where *where, struct rsb_treesync *sync, int r,
	struct rsb_diag *diag)
{
	if (r < 0 && !down->force)
		return say_stays(where, r, diag);
	if (r < 0) {
		(void)fprintf(stderr, "rsb down: not synced out: %s\n", rsb_diag_text(diag, r));
		down->no_sync = true; /* nor a second time */
		return 0;
	}
	down->changed +=
		sync->stats.items[RSB_SYNCOUT_COMES] + sync->stats.items[RSB_SYNCOUT_PARTLY];
	down->removed += sync->stats.items[RSB_SYNCOUT_GOES];
	if (sync->stats.items[RSB_SYNCOUT_MISSED] && !down->force)
		return say_stays(where,
			rsb_diag_set(
				diag, -EBUSY, "not everything that changed could be brought out"),
			diag);
	if (!rsb_treesync_conflicts(sync)) {
		down->is_out = !sync->stats.items[RSB_SYNCOUT_MISSED];
		return 0;
	}
	if (down->force)
		return 0;
	r = rsb_treesync_say(sync);
	if (r > 0)
		(void)fprintf(stderr,
			"rsb down: the sandbox %s stays until %s, or 'rsb down --force'\n",
			where->state.name, sync->key ? "they are resolved" : "'rsb sync resolve'");
	return r;
}

/* A command has the mount for what it does, where there is one. */
static bool
has_its_turn(const struct down *down, const struct rsb_verb_session *session)
{
	return rsb_synchook_key(&session->config, true) || !down->with_mount ||
	       (down->is_mounted && !down->cut_off);
}

static int
sync_out(struct down *down, const struct rsb_where *where, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	struct rsb_treesync sync = { .verb = down->verb,
		.common = down->common,
		.session = &session,
		.out = true,
		.delete_many = down->delete_many,
		.guard = &down->guard,
		.again = down->told };
	int sig;
	int r;

	if (down->by_command)
		return 0;
	down->is_out = false;
	r = open_session(down, where, env, &session, diag);
	if (r < 0)
		return r;
	if (down->how < 0)
		down->how = (int)session.config.sandbox.on_down;
	if (down->no_sync || !session.config.sync.out_on_down || !session.state.local_dir[0] ||
		(down->force && down->cut_off) || !has_its_turn(down, &session))
		return 0;
	r = has_something(down, where, &session, diag);
	if (r == -ENOENT && down->force)
		return 0; /* what is to be done with it is done */
	if (r <= 0)
		return r;
	r = rsb_treesync_run(&sync, diag);
	down->told = true;
	down->by_command = sync.key;
	r = judge(down, where, &sync, r, diag);
	rsb_treesync_done(&sync);
	sig = rsb_syncguard_release(&down->guard);
	/* The sync is whole, and that was all that could not be interrupted. */
	if (r == 0 && sig)
		rsb_outcome_die_by(sig);
	return r;
}

/*
 * Once while it is still mounted, so that whoever has conflicts finds it kept alive, and once when
 * nothing more can come by the mount.
 */
static int
stop(struct down *down, const struct rsb_where *where, char **env, struct rsb_diag *diag)
{
	const struct rsb_daemon_end end = {
		.teller = "rsb down", .force = down->force, .can_force = true
	};
	struct rsb_daemon_look look = { 0 };
	int r = 0;

	/* what cannot be asked is no worse than what answers */
	if (rsb_daemon_look(where, &look, NULL) >= 0)
		down->cut_off = look.cut_off;
	down->is_mounted = look.mounted;
	down->with_mount = true;
	/* Else it would be known only when everything has come. */
	if (look.running && !down->force)
		r = rsb_inuse_check(where, true, diag);
	if (r < 0)
		return r;
	if (look.mounted && !down->cut_off && !down->no_sync)
		rsb_treesync_settle(where->socket);
	if (!down->no_sync)
		r = sync_out(down, where, env, diag);
	down->with_mount = false;
	if (r == 0)
		rsb_syncguard_past(&down->guard);
	if (r == 0)
		r = rsb_daemon_stop(where, &end, diag);
	return r ? r : sync_out(down, where, env, diag);
}

/* ---- then it ends ---- */

/*
 * The host cannot pause. Who asked for it by name has failed; by default it is left to its time,
 * when nothing of it is missing here.
 */
static int
leave(struct down *down, const struct rsb_verb_session *session, bool asked, struct rsb_diag *diag)
{
	const char *name = session->state.name;

	(void)rsb_until_ask(session->backend, &session->state, down->until);
	if (!asked && down->is_out) {
		down->how = RSB_CONFIG_DOWN_LEAVE;
		return 0;
	}
	return rsb_diag_set(diag, -EOPNOTSUPP,
		"%s is unmounted, but still running%s: this host cannot pause a sandbox; "
		"'rsb down --kill %s' ends it, 'rsb mount %s' mounts it again",
		name, down->until, name, name);
}

/* For a host that loses what it has paused. It is no reason to let the sandbox run. */
static void
keep_snapshot(struct down *down, const struct rsb_where *where, struct rsb_verb_session *session)
{
	struct rsb_snaptake take = { .verb = down->verb,
		.common = down->common,
		.where = where,
		.session = session,
		.why = "pause" };
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_backend *backend = session->backend;
	struct rsb_snappoint point;
	struct rsb_diag diag = { 0 };
	int r;

	if (!session->config.sync.interval_ns || down->cut_off ||
		backend->ops->get(backend, session->state.sandbox_id, &sandbox, NULL) < 0 ||
		sandbox.state == RSB_SANDBOX_PAUSED)
		return;
	r = rsb_snaptake_run(&take, &point, &diag);
	if (r < 0)
		(void)fprintf(
			stderr, "rsb down: no snapshot is taken: %s\n", rsb_diag_text(&diag, r));
}

/* By force, what is to be done with it is done when it is gone. */
static int
pass_gone(struct down *down, int r)
{
	down->is_gone = r == -ENOENT && down->force;
	return down->is_gone ? 0 : r;
}

static int
end_sandbox(struct down *down, const struct rsb_where *where, bool asked, char **env,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	int r;

	r = open_session(down, where, env, &session, diag);
	if (r < 0)
		return r;
	switch (down->how) {
	case RSB_CONFIG_DOWN_KILL:
		return rsb_keeper_destroy(&session.env, &session.state, diag);
	case RSB_CONFIG_DOWN_PAUSE:
		keep_snapshot(down, where, &session);
		r = session.backend->ops->pause(session.backend, session.state.sandbox_id, diag);
		if (r == -EBUSY)
			return 0; /* paused already */
		if (r >= 0)
			rsb_state_event(
				session.dir, "paused", "the sandbox is paused by 'rsb down'");
		if (r == -ENOENT)
			return pass_gone(
				down, rsb_state_say_gone(where->root, where->state.name, diag));
		return r == -EOPNOTSUPP ? leave(down, &session, asked, diag) : r;
	default:
		if (down->cut_off)
			return 0;
		r = rsb_until_ask(session.backend, &session.state, down->until);
		return pass_gone(down,
			r == -ENOENT ? rsb_state_say_gone(where->root, where->state.name, diag)
				     : r);
	}
}

static int
say(const struct down *down, const struct rsb_state *state)
{
	static const struct {
		const char *word;
		const char *text;
	} ends[] = {
		[RSB_CONFIG_DOWN_KILL] = { "killed", " and gone" },
		[RSB_CONFIG_DOWN_PAUSE] = { "paused", ", paused" },
		[RSB_CONFIG_DOWN_LEAVE] = { "left", ", still running" },
	};
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };

	if (down->common->json) {
		rsb_report_init(&report);
		rsb_report_sandbox(&report, state);
		rsb_report_str(&report, "end", down->is_gone ? "gone" : ends[down->how].word);
		rsb_report_bool(&report, "synced", down->is_out);
		rsb_report_number(&report, "changed", down->changed);
		rsb_report_number(&report, "removed", down->removed);
		return rsb_report_print(&report);
	}
	if (down->common->quiet)
		return 0;
	if (down->changed || down->removed)
		(void)printf("%s synced out to %s: %llu changed, %llu removed\n", state->name,
			state->local_dir, (unsigned long long)down->changed,
			(unsigned long long)down->removed);
	(void)printf("%s is down%s%s\n", state->name,
		down->is_gone ? "; its sandbox was gone already" : ends[down->how].text,
		down->until);
	return 0;
}

/* What failed came after a sync: that is not undone. */
static int
say_synced(const struct down *down, const struct rsb_where *where, int r, struct rsb_diag *diag)
{
	struct rsb_diag why = *diag;

	if (!down->changed && !down->removed)
		return r;
	return rsb_diag_set(diag, r,
		"%s; before that it was synced out to %s: %llu changed, %llu removed",
		rsb_diag_text(&why, r), where->state.local_dir, (unsigned long long)down->changed,
		(unsigned long long)down->removed);
}

/* What a sync that was killed left there. */
static void
sweep(const struct rsb_where *where)
{
	const char *path = where->state.local_dir;
	rsb_autoclose int fd = path[0] ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		rsb_stage_sweep(fd);
}

static int
bring_down(struct down *down, const char *name, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	const bool asked = down->how >= 0;
	int status = 0;
	int r;

	down->guard = (struct rsb_syncguard){ .verb = down->verb,
		.name = where.state.name,
		.dir = where.state.local_dir,
		.ends = true };
	r = rsb_where_find(name, env, &where, diag);
	if (r >= 0)
		r = rsb_syncguard_begin(&down->guard, &status);
	if (r != 0)
		return r < 0 ? r : status;
	sweep(&where);
	r = stop(down, &where, env, diag);
	if (r > 0)
		return r;
	if (r >= 0)
		r = end_sandbox(down, &where, asked, env, diag);
	return r < 0 ? say_synced(down, &where, r, diag) : say(down, &where.state);
}

static int
run_down(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	struct down down = { .verb = verb,
		.common = &call->common,
		.how = -1,
		.force = rsb_verb_has(call, 'f'),
		.no_sync = rsb_verb_has(call, 'S'),
		.delete_many = rsb_verb_has(call, 'D') };
	struct rsb_diag diag = { 0 };
	int n_how = 0;
	int r;

	for (size_t i = 0; i < call->n_own; i++) {
		const int c = call->own[i].c;

		n_how += c == 'k' || c == 'p' || c == 'l';
		if (c == 'k')
			down.how = RSB_CONFIG_DOWN_KILL;
		else if (c == 'p')
			down.how = RSB_CONFIG_DOWN_PAUSE;
		else if (c == 'l')
			down.how = RSB_CONFIG_DOWN_LEAVE;
	}
	if (n_how > 1)
		return rsb_verb_usage(verb, "--kill, --pause and --leave exclude each other");
	r = bring_down(&down, call->words[0], call->env, &diag);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : r;
}

static const struct option options[] = {
	{ "kill", no_argument, NULL, 'k' },
	{ "pause", no_argument, NULL, 'p' },
	{ "leave", no_argument, NULL, 'l' },
	{ "no-sync", no_argument, NULL, 'S' },
	{ "delete-many", no_argument, NULL, 'D' },
	{ "force", no_argument, NULL, 'f' },
	RSB_VERB_LONG,
	{ 0 },
};

const struct rsb_verb rsb_verb_down = {
	.name = "down",
	.usage = "down [OPTION]... [SANDBOX]",
	.help = "Sync a sandbox out, unmount it, and do with it what sandbox.on_down says: pause it.",
	.more = "      --kill            end it, with everything in it\n"
		"      --pause           pause it, until it is used again\n"
		"      --leave           let it run until its time is over\n"
		"      --no-sync         leave the directory that it was made of as it is\n"
		"      --delete-many     also delete more than 20 files and a tenth of all there\n"
		"  -f, --force           also while files are open in the mount, commands run, or it\n"
		"                        cannot be synced out\n",
	.letters = "f" RSB_VERB_LETTERS,
	.options = options,
	.max_words = 1,
	.wrong_words = "one sandbox at a time",
	.run = run_down,
};
