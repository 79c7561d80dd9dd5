/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/comeback.h"
#include "exec/daemon.h"
#include "exec/firstsync.h"
#include "exec/interrupt.h"
#include "exec/outcome.h"
#include "exec/progress.h"
#include "exec/reach.h"
#include "exec/report.h"
#include "exec/surround.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "keeper/deploy.h"
#include "keeper/manifest.h"
#include "keeper/mountpoint.h"
#include "util/cleanup.h"
#include "util/str.h"

#define UP_TTL_NS (300 * RSB_NSEC_PER_SEC)

/* Of an attempt that does not come to its end; its parent clears it away. */
struct traces {
	bool made_sandbox;                      /* or is about to */
	bool restores;                          /* one that is gone; its state stays */
	bool mounted;                           /* or is about to be, and may not stay */
	char made_mountpoint[RSB_PATH_MAX + 1]; /* or is about to; empty: it was there */
};

struct up {
	const struct rsb_verb_common *common;
	char **env;
	const char *name_option;
	const char *mount_option;
	const char *exclude[RSB_VERB_OWN_MAX + 1];
	size_t n_exclude;
	char *root;
	char *dir;                /* absolute */
	char *mountpoint;         /* absolute */
	uint64_t made_mountpoint; /* keeper/mountpoint.h */
	bool made_sandbox;
	char name[RSB_STATE_NAME_MAX + 1];
	struct rsb_verb_session session;
	struct rsb_firstsync sync;
	struct rsb_progress progress;
	struct traces *traces; /* shared with our parent */
};

static bool
is_home(const struct up *up)
{
	const char *home = rsb_config_home(up->env);
	rsb_autofree char *real = home ? realpath(home, NULL) : NULL;

	return real && strcmp(real, up->dir) == 0;
}

static int
find_paths(struct up *up, const char *dir, struct rsb_diag *diag)
{
	struct stat st;
	int r;

	if (!dir) {
		r = rsb_where_cwd(&up->dir, diag);
		if (r < 0)
			return r;
	} else {
		up->dir = realpath(dir, NULL);
	}
	/* Without asking what is mounted there, which may be dead. */
	if (!up->dir || (dir && stat(up->dir, &st) < 0))
		return rsb_diag_set(diag, -errno, "%s: %s", dir, strerror(errno));
	if (dir && !S_ISDIR(st.st_mode))
		return rsb_diag_set(diag, -ENOTDIR, "%s is not a directory", dir);
	if (strcmp(up->dir, "/") == 0)
		return rsb_diag_set(diag, -EINVAL, "the root directory is not a workspace");
	if (!dir && is_home(up))
		return rsb_diag_set(diag, -EINVAL,
			"this is your home directory, with keys and all: 'rsb up %s' if that is meant",
			up->dir);
	r = rsb_state_root(up->env, &up->root, diag);
	if (r >= 0 && up->name_option)
		(void)strcpy(up->name, up->name_option);
	else if (r >= 0)
		r = rsb_state_name_for(up->root, up->dir, up->name, diag);
	return r;
}

/* Everything about the mount that can be known before there is a sandbox. */
static int
find_mountpoint(struct up *up, const char *before, struct rsb_diag *diag)
{
	rsb_autofree char *beside = rsb_str_printf("%s.rsb", up->dir);
	const char *path = up->mount_option ? up->mount_option : before[0] ? before : beside;
	int r;

	if (!beside)
		return -ENOMEM;
	/* Noted before it is made. One that was there, or that somebody else makes, is not ours. */
	if (access(path, F_OK) < 0 && errno == ENOENT)
		(void)snprintf(up->traces->made_mountpoint, sizeof(up->traces->made_mountpoint),
			"%s", path);
	r = rsb_mountpoint_prepare(path, up->dir, &up->mountpoint, &up->made_mountpoint, diag);
	if (r < 0 || !up->made_mountpoint)
		up->traces->made_mountpoint[0] = '\0';
	return r;
}

static int
make_sandbox(struct up *up, struct rsb_diag *diag)
{
	struct rsb_keeper_create req = {
		.local_dir = up->dir, .ttl_ns = UP_TTL_NS, .pause_on_expire = true
	};
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_state *state = &up->session.state;
	rsb_autofree char *sidecar = NULL;
	int r;

	r = rsb_firstsync_check(&up->sync, diag);
	if (r >= 0)
		r = find_mountpoint(up, "", diag);
	if (r >= 0)
		r = rsb_deploy_find(up->env, &sidecar, diag);
	if (r < 0)
		return r;
	req.mountpoint = up->mountpoint;
	req.made_mountpoint = up->made_mountpoint;
	up->traces->made_sandbox = true;
	rsb_progress_begin(&up->progress, &rsb_verb_up, up->common, "making the sandbox");
	r = rsb_keeper_create(&up->session.env, &req, state, diag);
	rsb_progress_end(&up->progress, r);
	if (r < 0)
		return r;
	up->made_sandbox = true;
	r = rsb_keeper_resume(&up->session.env, state, &sandbox, diag);
	return r < 0 ? r : rsb_firstsync_run(&up->sync, &sandbox, diag);
}

static int
open_session(struct up *up, struct rsb_diag *diag)
{
	struct rsb_verb_session_of of = {
		.root = up->root,
		.name = up->name,
		.project_dir = up->dir,
		.create = true,
		.sync = true,
	};

	return rsb_verb_session_open(&up->session, &of, up->common, up->env, diag);
}

/* What it held is lost with it; what is here can be brought in again. */
static int
make_again(struct up *up, struct rsb_diag *diag)
{
	int r;

	(void)rsb_diag_set(diag, 0, "%s", ""); /* that it is gone is not what fails here */
	r = rsb_keeper_destroy(&up->session.env, &up->session.state, diag);
	rsb_verb_session_done(&up->session);
	if (r >= 0)
		r = open_session(up, diag);
	if (r < 0)
		return r;
	(void)fprintf(stderr,
		"rsb up: the sandbox %s is gone with what was in it: making another\n", up->name);
	return make_sandbox(up, diag);
}

/* That of one who was killed: all is in when that is noted. He may not have come to the sidecar. */
static int
finish_sync(struct up *up, const struct rsb_sandbox *sandbox, struct rsb_diag *diag)
{
	int r = rsb_firstsync_run(&up->sync, sandbox, diag);

	if (r < 0 && rsb_keeper_deploy(&up->session.env, &up->session.state, sandbox, NULL) >= 0)
		r = rsb_firstsync_run(&up->sync, sandbox, diag);
	return r;
}

/* The sandbox of this name is there already: it is brought back, not made again. */
static int
bring_back(struct up *up, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_state *state = &up->session.state;
	int r;

	up->traces->restores = true;
	r = rsb_comeback_resume(&rsb_verb_up, up->common, &up->session, &sandbox, diag);
	up->traces->restores = false;
	if (r == -ENOENT)
		return make_again(up, diag);
	if (r >= 0)
		r = find_mountpoint(up, state->mountpoint, diag);
	if (r < 0)
		return r;
	if (up->made_mountpoint || strcmp(state->mountpoint, up->mountpoint) != 0)
		state->made_mountpoint = up->made_mountpoint;
	(void)strcpy(state->mountpoint, up->mountpoint);
	r = rsb_state_save(up->session.dir, state);
	if (r < 0)
		return rsb_state_say_unwritten(up->session.dir, r, diag);
	return rsb_manifest_exists(rsb_state_path(up->session.dir))
		       ? 0
		       : finish_sync(up, &sandbox, diag);
}

/*
 * A daemon that is cut off may never hear that its sandbox is gone, which the control plane that we
 * have reached knows.
 */
static bool
is_lost(struct up *up, const struct rsb_daemon_look *look)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_backend *backend = up->session.backend;

	if (!look->running || !look->cut_off || look->lost)
		return look->lost;
	return backend->ops->get(backend, up->session.state.sandbox_id, &sandbox, NULL) == -ENOENT;
}

/* 1: it is up, and mounted where it should be; nothing is to be done. */
static int
look_at_known(struct up *up, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	const struct rsb_state *state = &up->session.state;
	rsb_autofree char *wanted = NULL;
	struct rsb_daemon_end end = { .teller = "rsb up" };
	struct rsb_daemon_look look;
	int r;

	if (strcmp(state->local_dir, up->dir) != 0)
		return rsb_diag_set(diag, -EEXIST,
			"the name %s is taken by the sandbox of %s; choose another by --name",
			up->name, state->local_dir[0] ? state->local_dir : "no directory");
	r = rsb_where_find(up->name, up->env, &where, diag);
	if (r >= 0)
		r = rsb_daemon_look(&where, &look, diag);
	if (r < 0)
		return r;
	look.lost = is_lost(up, &look);
	end.force = look.lost;
	/* Without a manifest who brought it in by a command was killed meanwhile. */
	if (!look.running || !look.mounted || look.lost ||
		!rsb_manifest_exists(rsb_state_path(up->session.dir)))
		return look.running ? rsb_daemon_stop(&where, &end, diag)
				    : rsb_daemon_bury(&where, diag);
	if (up->mount_option && (rsb_mountpoint_resolve(up->mount_option, &wanted, NULL) < 0 ||
					strcmp(wanted, state->mountpoint) != 0))
		return rsb_diag_set(diag, -EBUSY,
			"%s is up already, mounted at %s; 'rsb umount %s' first, to mount it "
			"elsewhere",
			up->name, state->mountpoint, up->name);
	up->mountpoint = strdup(state->mountpoint);
	return up->mountpoint ? 1 : -ENOMEM;
}

static int
say_what_next(const struct up *up, const char *how)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	const unsigned long long files = up->sync.stats.files;
	char bytes[RSB_PROGRESS_SIZE];

	if (up->common->json) {
		rsb_report_init(&report);
		rsb_report_sandbox(&report, &up->session.state);
		rsb_report_str(&report, "mount", up->mountpoint);
		rsb_report_str(&report, "dir", up->dir);
		rsb_report_bool(&report, "made", up->made_sandbox);
		rsb_report_number(&report, "files", files);
		rsb_report_number(&report, "bytes", up->sync.stats.bytes);
		return rsb_report_print(&report);
	}
	if (up->common->quiet)
		return 0;
	(void)printf("%s is up%s", up->name, how);
	rsb_progress_bytes(up->sync.stats.bytes, bytes);
	if (up->sync.by_command)
		(void)printf(", synced in by sync.in_command");
	else if (up->made_sandbox || files)
		(void)printf(" (%llu file%s, %s)", files, files == 1 ? "" : "s", bytes);
	(void)printf(": cd %s and run commands with rsb-exec\n", up->mountpoint);
	return 0;
}

static int
start_daemon(struct up *up, struct rsb_diag *diag)
{
	/* Still under our lock: whoever comes meanwhile finds it mounted, or finds us gone. */
	int r;

	up->traces->mounted = up->sync.by_command;
	rsb_progress_begin(&up->progress, &rsb_verb_up, up->common, "mounting");
	r = rsb_daemon_start(up->name, up->mountpoint, up->common->overrides, diag);
	rsb_progress_end(&up->progress, r);
	return r;
}

static int
sync_by_command(struct up *up, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	int r = rsb_where_find(up->name, up->env, &where, diag);

	return r < 0 ? r : rsb_firstsync_command(&up->sync, where.socket, diag);
}

static void
stop_daemon(const struct up *up)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	const struct rsb_daemon_end end = { .force = true };

	if (rsb_where_find(up->name, up->env, &where, NULL) >= 0)
		(void)rsb_daemon_stop(&where, &end, NULL);
}

/* Nothing was done in it yet: it goes rather than stay behind half made. */
static void
undo(struct up *up)
{
	if (up->traces->mounted)
		stop_daemon(up);
	if (up->made_sandbox && rsb_verb_session_relock(&up->session, NULL) >= 0)
		(void)rsb_keeper_destroy(&up->session.env, &up->session.state, NULL);
	if (up->mountpoint)
		rsb_mountpoint_remove(up->mountpoint, up->made_mountpoint);
}

static int
bring_up(struct up *up, struct rsb_diag *diag)
{
	bool known;
	int r;

	r = open_session(up, diag);
	if (r < 0)
		return r;
	known = up->session.known;
	r = known ? look_at_known(up, diag) : 0;
	if (r > 0) {
		/* Others may end it meanwhile. */
		rsb_verb_session_unlock(&up->session);
		rsb_state_unlock(up->session.dir, RSB_STATE_LOCK_SYNC);
		r = rsb_reach_wait(&(struct rsb_reach){ .name = up->name,
					   .env = up->env,
					   .wait_ns = up->session.config.keeper.recover_wait_ns,
					   .quiet = up->common->quiet },
			diag);
		return r < 0 ? r : say_what_next(up, " already");
	}
	if (r == 0)
		r = known ? bring_back(up, diag) : make_sandbox(up, diag);
	if (r >= 0)
		r = start_daemon(up, diag);
	if (r >= 0 && up->sync.by_command)
		r = sync_by_command(up, diag);
	if (r < 0)
		undo(up);
	*up->traces = (struct traces){ 0 };
	return r < 0 ? r : say_what_next(up, up->made_sandbox ? "" : " again");
}

static int
end_sandbox(struct up *up, struct rsb_diag *diag)
{
	int r = open_session(up, diag);

	if (r < 0)
		return r;
	r = up->session.known && !up->traces->restores
		    ? rsb_keeper_destroy(&up->session.env, &up->session.state, diag)
		    : rsb_keeper_forget(&up->session.env, diag);
	rsb_verb_session_done(&up->session);
	return r;
}

/* The child was ended by a signal: so are we, when nothing is left of what it began. */
rsb_noreturn static void
clear_away(struct up *up, int sig)
{
	const char *mountpoint = up->traces->made_mountpoint;
	struct rsb_diag diag = { 0 };
	int r;

	if (up->traces->mounted)
		stop_daemon(up);
	r = up->traces->made_sandbox || up->traces->restores ? end_sandbox(up, &diag) : 0;
	if (mountpoint[0])
		(void)rmdir(mountpoint);
	if (r < 0)
		(void)fprintf(stderr,
			"rsb up: interrupted; the sandbox %s may still be there, 'rsb list' tells: %s\n",
			up->name, rsb_diag_text(&diag, r));
	else
		(void)fprintf(stderr, "rsb up: interrupted%s\n",
			up->traces->made_sandbox ? "; nothing is left of the sandbox" : "");
	rsb_outcome_die_by(sig);
}

/* bring_up() in a child, so that we see its end whatever ends it. */
static int
attempt(struct up *up, struct rsb_diag *diag, int *ret_status)
{
	struct rsb_interrupt_end end;
	int r;

	up->traces = mmap(NULL, sizeof(*up->traces), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (up->traces == MAP_FAILED)
		return -errno;
	r = rsb_interrupt_fork(&end);
	if (r == 0)
		return bring_up(up, diag);
	if (r < 0)
		return r;
	if (end.signal)
		clear_away(up, end.signal);
	*ret_status = end.status;
	return 0;
}

static int
run_up(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	struct up up = { .common = &call->common, .env = call->env };
	const char *dir = call->words[0];
	struct rsb_diag diag = { 0 };
	int status = 0;
	int r;

	for (size_t i = 0; i < call->n_own; i++) {
		const struct rsb_verb_option *o = &call->own[i];

		if (o->c == 'n')
			up.name_option = o->value;
		else if (o->c == 'm')
			up.mount_option = o->value;
		else
			up.exclude[up.n_exclude++] = o->value;
	}
	if (up.name_option && rsb_state_name_check(up.name_option, &diag) < 0)
		return rsb_verb_usage(verb, diag.text);
	r = find_paths(&up, dir, &diag);
	if (r >= 0)
		r = rsb_surround_check(up.root, up.dir, dir != NULL, &diag);
	up.sync = (struct rsb_firstsync){ .verb = verb,
		.common = &call->common,
		.session = &up.session,
		.dir = up.dir,
		.exclude = up.exclude };
	if (r >= 0)
		r = attempt(&up, &diag, &status);
	rsb_verb_session_done(&up.session);
	free(up.root);
	free(up.dir);
	free(up.mountpoint);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : status;
}

static const struct option options[] = {
	{ "name", required_argument, NULL, 'n' },
	{ "mount", required_argument, NULL, 'm' },
	{ "exclude", required_argument, NULL, 'x' },
	RSB_VERB_LONG,
	{ 0 },
};

const struct rsb_verb rsb_verb_up = {
	.name = "up",
	.usage = "up [OPTION]... [DIR]",
	.help = "Make a sandbox, sync DIR (default: this one) in and mount it beside it at ../DIR.rsb.",
	.more = "      --name NAME       what to call it; else as DIR\n"
		"  -m, --mount PATH      where to mount it\n"
		"      --exclude PATTERN leave out what matches, gitignore syntax\n",
	.letters = "m:" RSB_VERB_LETTERS,
	.options = options,
	.max_words = 1,
	.wrong_words = "one directory at a time",
	.run = run_up,
};
