/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "main"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "fuse/askupgrade.h"
#include "fuse/daemon.h"
#include "fuse/options.h"
#include "fuse/supervise.h"
#include "fuse/uplink.h"
#include "keeper/mountpoint.h"
#include "util/fd.h"
#include "util/log.h"

/* mount(8)'s exit codes, for mount.fuse.rsb. */
enum { MOUNT_USAGE = 1, MOUNT_SYSTEM = 2, MOUNT_FAILED = 32 };

struct start {
	struct rsb_options options;
	struct rsb_uplink *uplink;
};

static void
usage(FILE *to)
{
	(void)fputs(
		"usage: rsb-mount [-f] [-v] [-o OPTIONS] NAME DIRECTORY\n"
		"       rsb-mount --no-mount [-f] [-v] [-o OPTIONS] NAME\n"
		"       rsb-mount -u DIRECTORY\n"
		"       rsb-mount --upgrade [--force] [-o socket=PATH] NAME\n"
		"       rsb-mount --help | --version\n"
		"\n"
		"Mounts the workspace of the sandbox NAME at DIRECTORY.\n"
		"\n"
		"  -f, --foreground  stay in the foreground, log to stderr\n"
		"  -o OPTIONS        ro, rw, noexec, allow_other, sync, async, idmap=user|none,\n"
		"                    crashes=NUMBER, socket=PATH, url=URL,key=FILE, noguard,\n"
		"                    noepoch, noexpire; or one setting of rsb.conf(5),\n"
		"                    section.key=VALUE\n"
		"      --no-mount    only serve commands, for exec.linger after the last one\n"
		"  -u, --unmount     unmount DIRECTORY\n"
		"      --upgrade     let this program serve the mount of NAME from now on\n"
		"      --force       with it: also while commands run, which are lost\n"
		"  -v, --verbose     log more\n"
		"  -h, --help        show this text\n"
		"  -V, --version     show the version\n",
		to);
}

static int
exit_code(const struct rsb_options *options, int r)
{
	if (r >= 0)
		return r;
	if (!options->helper)
		return r == -EINVAL ? 2 : 1;
	if (r == -EINVAL)
		return MOUNT_USAGE;
	return r == -ENOMEM ? MOUNT_SYSTEM : MOUNT_FAILED;
}

static int
run_daemon(void *arg, struct rsb_shared *shared, int sock, int notify_sock)
{
	struct start *start = arg;
	const int socks[2] = { sock, notify_sock };

	return rsb_daemon_main(&start->options, start->uplink, shared, socks);
}

/* The log is opened before the fork, so that supervisor and daemon share it. */
static void
open_log(const struct start *start)
{
	const char *path = rsb_uplink_info(start->uplink)->log;
	enum rsb_log_level level = start->options.verbose ? RSB_LOG_DBG : RSB_LOG_INFO;
	int fd = 2;

	if (path && !start->options.foreground)
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	/* Without it the daemon is silent, which is no reason not to mount. */
	rsb_log_init("rsb-mount", level, fd < 0 ? 2 : fd);
}

/* It is not looked at when it is mounted: only we could answer. */
static int
find_mountpoint(struct rsb_options *options, struct rsb_diag *diag)
{
	int r;

	if (options->no_mount)
		return 0;
	if (options->takeover.role) {
		options->mountpoint = strdup(options->directory);
		return options->mountpoint ? 0 : -ENOMEM;
	}
	r = rsb_mountpoint_resolve(options->directory, &options->mountpoint, diag);
	return r < 0 ? r : rsb_mountpoint_check(options->mountpoint, diag);
}

/* The daemon's process has become this program. */
static int
go_on_as_daemon(struct start *start)
{
	const struct rsb_takeover *takeover = &start->options.takeover;
	struct rsb_shared *shared;
	int r;

	r = rsb_shared_map(takeover->shared_fd, &shared);
	if (r < 0)
		return r;
	(void)close(takeover->shared_fd);
	r = run_daemon(start, shared, takeover->sock, takeover->notify_sock);
	/* It has closed it, as in a process that was forked. */
	start->uplink = NULL;
	return r;
}

static int
do_mount(struct start *start, char *const *argv, struct rsb_diag *diag)
{
	struct rsb_options *options = &start->options;
	struct rsb_supervise supervise = { .daemon = run_daemon, .arg = start };
	int r = 0;

	r = find_mountpoint(options, diag);
	if (r >= 0)
		r = rsb_uplink_open(options, environ, &start->uplink, diag);
	if (r < 0 || options->fake)
		return r;
	r = rsb_options_keep(options, argv);
	if (r < 0)
		return r;
	open_log(start);
	supervise.foreground = options->foreground;
	supervise.crashes = options->crashes;
	supervise.mount = (struct rsb_mount_opts){
		.name = options->name,
		.mountpoint = options->mountpoint,
		.allow_other = options->allow_other,
		.read_only = options->read_only,
		.noexec = options->noexec,
	};
	supervise.again = options->again;
	supervise.lock_fd = rsb_uplink_lock_fd(start->uplink);
	if (options->takeover.role == RSB_TAKEOVER_DAEMON)
		return go_on_as_daemon(start);
	if (options->takeover.role == RSB_TAKEOVER_SUPERVISOR)
		return rsb_supervise_go_on(&supervise, &options->takeover, diag);
	return rsb_supervise(&supervise, diag);
}

static int
do_unmount(const struct rsb_options *options, struct rsb_diag *diag)
{
	char *mountpoint = NULL;
	struct statfs st;
	int r;

	r = rsb_mountpoint_resolve(options->directory, &mountpoint, diag);
	if (r < 0)
		return r;
	if (!rsb_mountpoint_is_ours(mountpoint, NULL)) {
		r = rsb_diag_set(diag, -ENOENT, "no sandbox is mounted at '%s'", mountpoint);
		free(mountpoint);
		return r;
	}
	r = rsb_mount_undo(mountpoint, false);
	/* A dead one is of no use to whoever has it open. Attributes might come from a cache. */
	if (r == -EBUSY && statfs(mountpoint, &st) < 0 && errno == ENOTCONN)
		r = rsb_mount_undo(mountpoint, true);
	if (r < 0)
		(void)rsb_diag_set(
			diag, r, "'%s' cannot be unmounted: %s", mountpoint, strerror(-r));
	free(mountpoint);
	return r;
}

int
main(int argc, char **argv)
{
	struct start start = { .uplink = NULL };
	struct rsb_diag diag = { .text = "" };
	int r;

	if (rsb_fd_fill_standard() < 0)
		return 1;
	rsb_log_init("rsb-mount", RSB_LOG_INFO, 2);
	r = rsb_options_parse(argc, argv, &start.options, &diag);
	if (r >= 0 && start.options.help)
		usage(stdout);
	else if (r >= 0 && start.options.version)
		(void)puts("rsb-mount " RSB_VERSION);
	else if (r >= 0 && start.options.upgrade)
		r = rsb_askupgrade(&start.options, environ, &diag);
	else if (r >= 0 && start.options.unmount)
		r = do_unmount(&start.options, &diag);
	else if (r >= 0)
		r = do_mount(&start, argv, &diag);
	if (r < 0)
		(void)fprintf(stderr, "rsb-mount: %s\n", rsb_diag_text(&diag, r));
	r = exit_code(&start.options, r);
	rsb_uplink_close(start.uplink);
	rsb_options_done(&start.options);
	return r;
}
