/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exec/daemon.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "util/cleanup.h"

/* Where it was mounted last, unless the user names a place. */
static int
mountpoint_of(
	const struct rsb_where *where, const char *dir, char **ret_path, struct rsb_diag *diag)
{
	char *path;

	if (!dir && !where->state.mountpoint[0])
		return rsb_diag_set(diag, -EINVAL, "say where to mount %s", where->state.name);
	if (!dir) {
		/* Made by rsb up, removed with the mount. */
		(void)mkdir(where->state.mountpoint, 0755);
		dir = where->state.mountpoint;
	}
	path = realpath(dir, NULL);
	if (!path)
		return rsb_diag_set(diag, -errno, "the mount point %s: %s", dir, strerror(errno));
	*ret_path = path;
	return 0;
}

/* The sandbox may have been paused meanwhile; and it remembers where it is mounted now. */
static int
prepare(const struct rsb_where *where, const struct rsb_verb_common *common, const char *path,
	char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_verb_session_of of = { .root = where->root,
		.name = where->state.name,
		.backend = where->state.backend,
		.project_dir = where->state.local_dir };
	struct rsb_state state = where->state;
	int r;

	if (strlen(path) > RSB_PATH_MAX)
		return rsb_diag_set(diag, -ENAMETOOLONG, "the mount point's path is too long");
	r = rsb_verb_session_open(&session, &of, common, env, diag);
	if (r >= 0)
		r = rsb_keeper_resume(&session.env, &state, &sandbox, diag);
	if (r == -ENOENT)
		return rsb_diag_set(diag, r, "the sandbox %s is gone; 'rsb destroy %s' forgets it",
			state.name, state.name);
	if (r < 0)
		return r;
	(void)strcpy(state.mountpoint, path);
	return rsb_state_save(session.dir, &state);
}

static int
do_mount(const struct rsb_verb_common *common, const char *name, const char *dir, char **env,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	rsb_autofree char *path = NULL;
	int r;

	r = rsb_where_find(name, env, &where, diag);
	if (r < 0)
		return r;
	if (rsb_daemon_check(&where, NULL) == 0)
		return rsb_diag_set(diag, -EBUSY, "the sandbox %s is mounted already, at %s",
			where.state.name, where.state.mountpoint);
	r = mountpoint_of(&where, dir, &path, diag);
	if (r >= 0)
		r = prepare(&where, common, path, env, diag);
	if (r >= 0)
		r = rsb_daemon_start(where.state.name, path, common->overrides, diag);
	if (r >= 0 && !common->quiet)
		(void)printf("%s is mounted at %s\n", where.state.name, path);
	return r;
}

static int
run_mount(const struct rsb_verb *verb, int argc, char **argv, char **env)
{
	static const struct option options[] = { RSB_VERB_LONG, { 0 } };
	struct rsb_verb_common common = { 0 };
	struct rsb_diag diag = { 0 };
	int status;
	int c;
	int r;

	while ((c = getopt_long(argc, argv, RSB_VERB_LETTERS, options, NULL)) != -1)
		if (rsb_verb_option(verb, c, &common, &status))
			return status;
	if (argc == optind || argc - optind > 2)
		return rsb_verb_usage(verb, "name a sandbox, and at most one directory");
	r = do_mount(&common, argv[optind], argv[optind + 1], env, &diag);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

const struct rsb_verb rsb_verb_mount = {
	.name = "mount",
	.usage = "mount [OPTION]... SANDBOX [DIR]",
	.help = "Mount a sandbox's workspace at DIR, or where it was mounted before.",
	.run = run_mount,
};

static int
run_umount(const struct rsb_verb *verb, int argc, char **argv, char **env)
{
	static const struct option options[] = { { "force", no_argument, NULL, 'f' }, RSB_VERB_LONG,
		{ 0 } };
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	struct rsb_verb_common common = { 0 };
	struct rsb_diag diag = { 0 };
	bool force = false;
	int status;
	int c;
	int r;

	while ((c = getopt_long(argc, argv, "f" RSB_VERB_LETTERS, options, NULL)) != -1) {
		if (c == 'f')
			force = true;
		else if (rsb_verb_option(verb, c, &common, &status))
			return status;
	}
	if (argc - optind > 1)
		return rsb_verb_usage(verb, "one sandbox at a time");
	r = rsb_where_find(argv[optind], env, &where, &diag);
	if (r >= 0)
		r = rsb_daemon_check(&where, &diag);
	if (r >= 0)
		r = rsb_daemon_stop(&where, force, &diag);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

const struct rsb_verb rsb_verb_umount = {
	.name = "umount",
	.usage = "umount [OPTION]... [SANDBOX]",
	.help = "Unmount a sandbox and leave it running.",
	.more = "  -f, --force           also while files are open in the mount\n",
	.run = run_umount,
};
