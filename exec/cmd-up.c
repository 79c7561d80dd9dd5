/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/daemon.h"
#include "exec/outcome.h"
#include "exec/progress.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "keeper/sync.h"
#include "util/cleanup.h"
#include "util/str.h"

#define UP_TTL_NS (300 * RSB_NSEC_PER_SEC)
#define SYNC_TIMEOUT_NS (60 * RSB_NSEC_PER_SEC)

struct up {
	const struct rsb_verb *verb;
	struct rsb_verb_common common;
	char **env;
	const char *name_option;
	const char *mount_option;
	const char *exclude[RSB_CONFIG_LIST_MAX + 1];
	size_t n_exclude;
	char *root;
	char *dir;        /* absolute */
	char *mountpoint; /* absolute */
	bool made_mountpoint;
	char name[RSB_STATE_NAME_MAX + 1];
	struct rsb_verb_session session;
	struct rsb_state state;
	struct rsb_sync_stats stats;
	struct rsb_progress progress;
};

/* The last part of the directory's path, with what a name may not hold replaced. */
static void
name_of_dir(const char *dir, char name[static RSB_STATE_NAME_MAX + 1])
{
	const char *base = strrchr(dir, '/');
	size_t n = 0;

	base = base ? base + 1 : dir;
	for (; *base && n < RSB_STATE_NAME_MAX; base++) {
		bool ok = isalnum((unsigned char)*base) || (n > 0 && strchr("._-", *base));

		if (ok || n > 0)
			name[n++] = ok ? *base : '-';
	}
	name[n] = '\0';
	if (n == 0)
		(void)strcpy(name, "sandbox");
}

static int
find_paths(struct up *up, const char *dir, struct rsb_diag *diag)
{
	struct stat st;

	up->dir = realpath(dir, NULL);
	if (!up->dir || stat(up->dir, &st) < 0)
		return rsb_diag_set(diag, -errno, "%s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return rsb_diag_set(diag, -ENOTDIR, "%s is not a directory", dir);
	if (strcmp(up->dir, "/") == 0)
		return rsb_diag_set(diag, -EINVAL, "the root directory is not a workspace");
	if (!up->mount_option)
		up->mountpoint = rsb_str_printf("%s.rsb", up->dir);
	else if (up->mount_option[0] == '/')
		up->mountpoint = strdup(up->mount_option);
	else {
		rsb_autofree char *cwd = getcwd(NULL, 0);

		up->mountpoint = cwd ? rsb_str_path(cwd, up->mount_option) : NULL;
	}
	if (!up->mountpoint)
		return -ENOMEM;
	if (up->name_option && !rsb_state_name_ok(up->name_option))
		return rsb_diag_set(diag, -EINVAL,
			"a name has 1 to 64 of A-Z a-z 0-9 . _ - and begins with none of '.' and '-'");
	if (up->name_option)
		(void)strcpy(up->name, up->name_option);
	else
		name_of_dir(up->dir, up->name);
	return rsb_state_root(up->env, &up->root, diag);
}

/* A mount point that we make goes away with the mount. */
static int
make_mountpoint(struct up *up, struct rsb_diag *diag)
{
	if (mkdir(up->mountpoint, 0755) == 0) {
		up->made_mountpoint = true;
		return 0;
	}
	if (errno == EEXIST)
		return 0;
	return rsb_diag_set(diag, -errno, "the mount point %s cannot be made: %s", up->mountpoint,
		strerror(errno));
}

static void
say_progress(void *arg, const struct rsb_sync_stats *stats)
{
	struct up *up = arg;

	rsb_progress_sync(&up->progress, stats);
}

static void
say_notice(void *arg, const char *text)
{
	struct up *up = arg;

	rsb_progress_done(&up->progress);
	if (!up->common.quiet)
		(void)fprintf(stderr, "rsb up: %s\n", text);
}

static int
sync_in(struct up *up, const struct rsb_sandbox *sandbox, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_keeper_target_done) struct rsb_keeper_target target = { 0 };
	RSB_CLEANUP(rsb_secret_done) struct rsb_secret key = { 0 };
	struct rsb_sync sync = { .dir = up->dir,
		.exclude = &up->session.config.sync.exclude,
		.more = up->exclude,
		.progress = say_progress,
		.notice = say_notice,
		.arg = up };
	struct rsb_sync_far far = {
		.sandbox_id = up->state.sandbox_id, .key = &key, .timeout_ns = SYNC_TIMEOUT_NS
	};
	int r;

	r = rsb_state_key(up->session.dir, &key);
	if (r >= 0)
		r = rsb_keeper_target(&up->session.env, &up->state, sandbox, &target);
	if (r < 0)
		return r;
	far.target = &target.target;
	rsb_progress_init(&up->progress, "syncing in", up->common.quiet);
	r = rsb_sync_in(&sync, &far, &up->stats, diag);
	rsb_progress_done(&up->progress);
	return r;
}

static int
make_sandbox(struct up *up, struct rsb_diag *diag)
{
	struct rsb_verb_session_of of = {
		.root = up->root, .name = up->name, .project_dir = up->dir, .create = true
	};
	struct rsb_keeper_create req = { .local_dir = up->dir,
		.mountpoint = up->mountpoint,
		.ttl_ns = UP_TTL_NS,
		.pause_on_expire = true };
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	int r;

	r = rsb_verb_session_open(&up->session, &of, &up->common, up->env, diag);
	if (r < 0)
		return r;
	r = rsb_keeper_create(&up->session.env, &req, &up->state, diag);
	if (r >= 0)
		r = rsb_keeper_resume(&up->session.env, &up->state, &sandbox, diag);
	if (r >= 0)
		r = sync_in(up, &sandbox, diag);
	/* Nothing was done in it yet: it goes rather than stay behind half made. */
	if (r < 0 && up->state.sandbox_id[0])
		(void)rsb_keeper_destroy(&up->session.env, &up->state, NULL);
	else if (r < 0)
		(void)rsb_state_remove(up->session.dir);
	return r;
}

/* The sandbox of this name is there already: it is brought back, not made again. */
static int
bring_back(struct up *up, struct rsb_diag *diag)
{
	struct rsb_verb_session_of of = { .root = up->root,
		.name = up->name,
		.backend = up->state.backend,
		.project_dir = up->dir };
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	int r;

	if (strcmp(up->state.local_dir, up->dir) != 0)
		return rsb_diag_set(diag, -EEXIST,
			"the name %s is taken by the sandbox of %s; choose another by --name",
			up->name, up->state.local_dir[0] ? up->state.local_dir : "no directory");
	r = rsb_verb_session_open(&up->session, &of, &up->common, up->env, diag);
	if (r >= 0)
		r = rsb_keeper_resume(&up->session.env, &up->state, &sandbox, diag);
	if (r == -ENOENT)
		return rsb_diag_set(diag, r, "the sandbox %s is gone; 'rsb destroy %s' forgets it",
			up->name, up->name);
	if (r >= 0 && strcmp(up->state.mountpoint, up->mountpoint) != 0) {
		if (strlen(up->mountpoint) > RSB_PATH_MAX)
			return rsb_diag_set(
				diag, -ENAMETOOLONG, "the mount point's path is too long");
		(void)strcpy(up->state.mountpoint, up->mountpoint);
		r = rsb_state_save(up->session.dir, &up->state);
	}
	return r;
}

static void
say_what_next(const struct up *up, bool fresh)
{
	char bytes[RSB_PROGRESS_SIZE];

	rsb_progress_bytes(up->stats.bytes, bytes);
	if (up->common.json)
		(void)printf("{\"name\":\"%s\",\"sandbox\":\"%s\",\"files\":%llu,\"bytes\":%llu}\n",
			up->name, up->state.sandbox_id, (unsigned long long)up->stats.files,
			(unsigned long long)up->stats.bytes);
	else if (up->common.quiet)
		return;
	else if (fresh)
		(void)printf("%s is up (%llu files, %s): cd %s and run commands with rsb-exec\n",
			up->name, (unsigned long long)up->stats.files, bytes, up->mountpoint);
	else
		(void)printf("%s is up again: cd %s and run commands with rsb-exec\n", up->name,
			up->mountpoint);
}

static int
bring_up(struct up *up, const char *dir, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_state_closep) struct rsb_state_dir *state_dir = NULL;
	bool fresh;
	int r;

	r = find_paths(up, dir, diag);
	if (r < 0)
		return r;
	r = rsb_state_open(up->root, up->name, false, &state_dir, NULL);
	if (r >= 0)
		r = rsb_state_load(state_dir, &up->state, diag);
	if (r < 0 && r != -ENOENT)
		return r;
	fresh = r < 0;
	if (!fresh && rsb_state_has_daemon(state_dir) && strcmp(up->state.local_dir, up->dir) == 0)
		return rsb_diag_set(diag, -EALREADY, "%s is up already, mounted at %s", up->name,
			up->state.mountpoint);
	r = make_mountpoint(up, diag);
	if (r >= 0)
		r = fresh ? make_sandbox(up, diag) : bring_back(up, diag);
	if (r < 0)
		return r;
	/* The daemon takes the lock itself. */
	rsb_state_unlock(up->session.dir, RSB_STATE_LOCK);
	r = rsb_daemon_start(up->name, up->mountpoint, up->common.overrides, diag);
	if (r >= 0)
		say_what_next(up, fresh);
	else if (fresh && rsb_state_lock(up->session.dir, RSB_STATE_LOCK, true) >= 0)
		(void)rsb_keeper_destroy(&up->session.env, &up->state, NULL);
	return r;
}

static int
run_up(const struct rsb_verb *verb, int argc, char **argv, char **env)
{
	static const struct option options[] = {
		{ "name", required_argument, NULL, 'n' },
		{ "mount", required_argument, NULL, 'm' },
		{ "exclude", required_argument, NULL, 'x' },
		RSB_VERB_LONG,
		{ 0 },
	};
	struct up up = { .verb = verb, .env = env };
	struct rsb_diag diag = { 0 };
	int status;
	int c;
	int r;

	while ((c = getopt_long(argc, argv, "m:" RSB_VERB_LETTERS, options, NULL)) != -1) {
		if (c == 'n')
			up.name_option = optarg;
		else if (c == 'm')
			up.mount_option = optarg;
		else if (c == 'x' && up.n_exclude < RSB_CONFIG_LIST_MAX)
			up.exclude[up.n_exclude++] = optarg;
		else if (rsb_verb_option(verb, c, &up.common, &status))
			return status;
	}
	if (argc - optind > 1)
		return rsb_verb_usage(verb, "one directory at a time");
	r = bring_up(&up, optind < argc ? argv[optind] : ".", &diag);
	if (r < 0 && up.made_mountpoint)
		(void)rmdir(up.mountpoint);
	rsb_verb_session_done(&up.session);
	free(up.root);
	free(up.dir);
	free(up.mountpoint);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

const struct rsb_verb rsb_verb_up = {
	.name = "up",
	.usage = "up [OPTION]... [DIR]",
	.help = "Make a sandbox, sync DIR (default: this one) in and mount it beside it at ../DIR.rsb.",
	.more = "      --name NAME       what to call it; else as DIR\n"
		"  -m, --mount PATH      where to mount it\n"
		"      --exclude PATTERN leave out what matches, gitignore syntax\n",
	.run = run_up,
};
