/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/comeback.h"
#include "exec/daemon.h"
#include "exec/report.h"
#include "exec/until.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "keeper/mountpoint.h"
#include "util/cleanup.h"

#define WORDS "one sandbox, and at most one directory"

struct place {
	char *path;
	uint64_t made; /* keeper/mountpoint.h */
};

static void
place_done(struct place *place)
{
	free(place->path);
}

/* Where it was mounted last, unless the user names a place. */
static int
find_place(
	const struct rsb_where *where, const char *dir, struct place *place, struct rsb_diag *diag)
{
	const struct rsb_state *state = &where->state;
	int r;

	if (!dir && !state->mountpoint[0])
		return rsb_diag_set(diag, -EINVAL, "say where to mount %s: it was not mounted yet",
			state->name);
	r = rsb_mountpoint_prepare(
		dir ? dir : state->mountpoint, state->local_dir, &place->path, &place->made, diag);
	/* Where nobody was left to remove it, it is still the one that we made. */
	if (r >= 0 && !place->made && strcmp(place->path, state->mountpoint) == 0)
		place->made = state->made_mountpoint;
	return r;
}

/* The sandbox may have been paused meanwhile; and it remembers where it is mounted now. */
static int
prepare(struct rsb_verb_session *session, const struct rsb_verb_common *common,
	const struct place *place, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_state *state = &session->state;
	int r;

	r = rsb_comeback_resume(&rsb_verb_mount, common, session, &sandbox, diag);
	if (r < 0)
		return r;
	(void)strcpy(state->mountpoint, place->path);
	state->made_mountpoint = place->made;
	r = rsb_state_save(session->dir, state);
	return r < 0 ? rsb_state_say_unwritten(session->dir, r, diag) : 0;
}

/* All under the state's lock, so that what it says is where the daemon is. */
static int
mount_there(const struct rsb_where *where, const struct rsb_verb_common *common,
	const struct place *place, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	struct rsb_verb_session_of of = { .root = where->root,
		.name = where->state.name,
		.project_dir = where->state.local_dir };
	int r;

	r = rsb_verb_session_open(&session, &of, common, env, diag);
	if (r < 0)
		return r;
	if (rsb_mountpoint_is_ours(session.state.mountpoint, session.state.name))
		return rsb_diag_set(diag, -EBUSY, "the sandbox %s is mounted already, at %s",
			session.state.name, session.state.mountpoint);
	r = prepare(&session, common, place, diag);
	return r < 0 ? r
		     : rsb_daemon_start(session.state.name, place->path, common->overrides, diag);
}

/* A daemon that only serves commands gives way, unless some run; so does one without a sandbox. */
static int
take_over(const struct rsb_where *where, struct rsb_diag *diag)
{
	struct rsb_daemon_end end = { .teller = "rsb mount" };
	struct rsb_daemon_look look;
	int r = rsb_daemon_look(where, &look, diag);

	if (r < 0)
		return r;
	if (look.mounted && !look.lost)
		return rsb_diag_set(diag, -EBUSY, "the sandbox %s is mounted already, at %s",
			where->state.name, where->state.mountpoint);
	end.force = look.lost;
	return look.running ? rsb_daemon_stop(where, &end, diag) : rsb_daemon_bury(where, diag);
}

static int
say(const struct rsb_verb_common *common, const struct rsb_where *where, const char *path)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };

	if (common->json) {
		rsb_report_init(&report);
		rsb_report_sandbox(&report, &where->state);
		rsb_report_str(&report, "mount", path);
		return rsb_report_print(&report);
	}
	/* A shell that was there before is in what the mount covers. */
	if (!common->quiet)
		(void)printf("%s is mounted at %s%s\n", where->state.name, path,
			where->by_mount ? ": cd to it anew" : "");
	return 0;
}

static int
do_mount(const struct rsb_verb_common *common, const char *name, const char *dir, char **env,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	RSB_CLEANUP(place_done) struct place place = { 0 };
	int r;

	r = rsb_where_find(name, env, &where, diag);
	if (r >= 0)
		r = take_over(&where, diag);
	if (r >= 0)
		r = find_place(&where, dir, &place, diag);
	if (r >= 0)
		r = mount_there(&where, common, &place, env, diag);
	if (r >= 0)
		return say(common, &where, place.path);
	if (place.path)
		rsb_mountpoint_remove(place.path, place.made);
	return r;
}

static int
say_upgraded(const struct rsb_verb_common *common, const struct rsb_where *where)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };

	if (common->json) {
		rsb_report_init(&report);
		rsb_report_sandbox(&report, &where->state);
		rsb_report_str(&report, "mount", where->state.mountpoint);
		return rsb_report_print(&report);
	}
	if (!common->quiet)
		(void)printf("%s is served by rsb-mount " RSB_VERSION " now\n", where->state.name);
	return 0;
}

static int
do_upgrade(const struct rsb_verb_common *common, const char *name, bool force, char **env,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	int r;

	r = rsb_where_find(name, env, &where, diag);
	if (r >= 0)
		r = rsb_daemon_upgrade(&where, force, diag);
	return r < 0 ? r : say_upgraded(common, &where);
}

static const struct option mount_options[] = {
	{ "upgrade", no_argument, NULL, 'U' },
	{ "force", no_argument, NULL, 'f' },
	RSB_VERB_LONG,
	{ 0 },
};

static int
run_mount(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	bool force = rsb_verb_has(call, 'f');
	struct rsb_diag diag = { 0 };
	int r;

	if (rsb_verb_has(call, 'U')) {
		if (call->words[0] && call->words[1])
			return rsb_verb_usage(verb, "one sandbox at a time");
		r = do_upgrade(&call->common, call->words[0], force, call->env, &diag);
		return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
	}
	if (force)
		return rsb_verb_usage(verb, "--force goes with --upgrade");
	r = do_mount(&call->common, call->words[0], call->words[0] ? call->words[1] : NULL,
		call->env, &diag);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

const struct rsb_verb rsb_verb_mount = {
	.name = "mount",
	.usage = "mount [OPTION]... [SANDBOX [DIR]]",
	.help = "Mount a sandbox's workspace at DIR, or where it was mounted before.",
	.more = "      --upgrade         instead: let the rsb-mount installed now serve the mount\n"
		"  -f, --force           with it: also while commands run, which are lost\n",
	.letters = "f" RSB_VERB_LETTERS,
	.options = mount_options,
	.max_words = 2,
	.wrong_words = WORDS,
	.run = run_mount,
};

static int
do_umount(const struct rsb_verb_common *common, const char *name, bool force, char **env,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	const struct rsb_daemon_end end = {
		.teller = "rsb umount", .force = force, .can_force = true
	};
	char until[RSB_UNTIL_SIZE];
	int r;

	r = rsb_where_find(name, env, &where, diag);
	if (r >= 0)
		r = rsb_daemon_check(&where, true, diag);
	if (r == -ENOTCONN && rsb_until_state(&where.state, common, env, NULL) == -ENOENT)
		r = rsb_state_say_gone(where.root, where.state.name, diag);
	if (r >= 0)
		r = rsb_daemon_stop(&where, &end, diag);
	if (r < 0)
		return r;
	if (common->json) {
		rsb_report_init(&report);
		rsb_report_sandbox(&report, &where.state);
		rsb_report_str(&report, "mount", where.state.mountpoint);
		return rsb_report_print(&report);
	}
	r = rsb_until_find(&where.state, common, env, until);
	if (r == -ENOENT)
		r = rsb_state_say_gone(where.root, where.state.name, diag);
	if (r >= 0 && !common->quiet)
		(void)printf("%s is unmounted, still running%s\n", where.state.name, until);
	return r;
}

static const struct option umount_options[] = {
	{ "force", no_argument, NULL, 'f' },
	RSB_VERB_LONG,
	{ 0 },
};

static int
run_umount(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	struct rsb_diag diag = { 0 };
	int r;

	r = do_umount(&call->common, call->words[0], rsb_verb_has(call, 'f'), call->env, &diag);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

const struct rsb_verb rsb_verb_umount = {
	.name = "umount",
	.usage = "umount [OPTION]... [SANDBOX]",
	.help = "Unmount a sandbox and leave it running.",
	.more = "  -f, --force           also while files are open in the mount, or commands run\n",
	.letters = "f" RSB_VERB_LETTERS,
	.options = umount_options,
	.max_words = 1,
	.wrong_words = "one sandbox at a time",
	.run = run_umount,
};
