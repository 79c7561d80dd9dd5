/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "supervise"

#include "fuse/offspring.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "fuse/notifier.h"
#include "keeper/mountpoint.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/spawn.h"

/*
 * The forks below end by exit(3), not _exit(2): there were no threads and nothing is in stdio's
 * buffers before them, and a leak checker looks at the end of each.
 */

/*
 * Only when both are killed it is for the notifier to see that no dead mount stays: then the
 * supervisor is not its parent any more.
 */
static void
notifier_main(const struct rsb_supervisor *s, int sock, pid_t supervisor)
{
	const struct rsb_mount_opts *mount = &s->opts->mount;

	rsb_notifier_main(sock);
	if (getppid() != supervisor && rsb_mountpoint_is_ours(mount->mountpoint, mount->name))
		(void)rsb_mount_undo(mount->mountpoint, true);
	exit(0);
}

int
rsb_offspring_notifier(struct rsb_supervisor *s, int *ret_sock)
{
	pid_t supervisor = getpid();
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		rsb_spawn_reset_signals();
		rsb_spawn_close_fds(&pair[1], 1);
		if (!s->opts->foreground)
			(void)dup2(0, 2);
		(void)prctl(PR_SET_NAME, "rsb-notify");
		/* The terminal's signals are the supervisor's business. */
		(void)signal(SIGINT, SIG_IGN);
		(void)signal(SIGHUP, SIG_IGN);
		notifier_main(s, pair[1], supervisor);
	}
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return -errno;
	}
	s->notifier = pid;
	*ret_sock = pair[0];
	return 0;
}

/* The result is an exit status. */
static int
run_program(const struct rsb_supervisor *s, int sock, int notify_sock)
{
	const struct rsb_takeover takeover = {
		.role = RSB_TAKEOVER_DAEMON,
		.shared_fd = s->shared_fd,
		.lock_fd = s->opts->lock_fd,
		.sock = sock,
		.notify_sock = notify_sock,
		.fuse_fd = -1,
	};
	int r = rsb_takeover_exec(&takeover, s->program, s->opts->again);

	(void)rsb_err_r(r, "the new program cannot be executed");
	return 1;
}

/* The daemon's process: keeps its two sockets, the log, and what opts->arg may have open. */
static pid_t
start_daemon(struct rsb_supervisor *s, int sock, int notify_sock)
{
	sigset_t none;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)close(s->sock);
	(void)close(s->signal_fd);
	if (s->status_fd >= 0)
		(void)close(s->status_fd);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (s->program >= 0)
		exit(run_program(s, sock, notify_sock));
	(void)close(s->shared_fd);
	exit(s->opts->daemon(s->opts->arg, s->shared, sock, notify_sock));
}

int
rsb_offspring_start(struct rsb_supervisor *s)
{
	int to_daemon[2];
	int notify_sock = -1;
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, to_daemon) < 0)
		return -errno;
	s->sock = to_daemon[0];
	r = rsb_offspring_notifier(s, &notify_sock);
	if (r >= 0) {
		s->daemon = start_daemon(s, to_daemon[1], notify_sock);
		r = s->daemon < 0 ? -errno : 0;
	}
	(void)close(to_daemon[1]);
	if (notify_sock >= 0)
		(void)close(notify_sock);
	return r;
}
