/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "supervise"

#include "fuse/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fuse/notify.h"
#include "keeper/mountpoint.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/spawn.h"
#include "util/str.h"

#define STOP_NS (40 * RSB_NSEC_PER_SEC) /* from a signal to the end of patience */
#define REQUEST_MAX (FUSE_MIN_READ_BUFFER + (1u << 20))

struct supervisor {
	const struct rsb_supervise *opts;
	struct rsb_shared *shared;
	int sock; /* to the daemon */
	int signal_fd;
	int status_fd; /* to the one who waits for the mount; -1: told */
	int fuse_fd;
	pid_t daemon;
	pid_t notifier;
	bool reported;
	bool mounted;
	bool unmounted;   /* on request */
	uint64_t kill_ns; /* when a daemon that was told to stop is killed; 0: never */
	int exit_status;
};

int
rsb_supervise_send(int sock, uint32_t type, int error, const char *text)
{
	struct rsb_supervise_msg msg = { .type = type, .error = error };

	(void)snprintf(msg.text, sizeof(msg.text), "%s", text ? text : "");
	return rsb_fd_send(sock, &msg, sizeof(msg), NULL, 0);
}

int
rsb_supervise_recv(int sock, struct rsb_supervise_msg *ret_msg, int *ret_fd)
{
	size_t n_fd = 1;
	int r;

	*ret_fd = -1;
	r = rsb_fd_recv(sock, ret_msg, sizeof(*ret_msg), ret_fd, &n_fd);
	if (r <= 0)
		return r == -ECONNRESET ? 0 : r;
	if (!n_fd)
		*ret_fd = -1;
	ret_msg->text[sizeof(ret_msg->text) - 1] = 0;
	return r == sizeof(*ret_msg) ? 1 : -EBADMSG;
}

int
rsb_supervise_ask_mount(int sock, int *ret_fd, struct rsb_diag *diag)
{
	struct rsb_supervise_msg msg;
	int fd = -1;
	int r;

	r = rsb_supervise_send(sock, RSB_SUPERVISE_MOUNT, 0, NULL);
	/* A stop that came meanwhile is not forgotten: it means that there is no mount. */
	if (r >= 0)
		r = rsb_supervise_recv(sock, &msg, &fd);
	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	if (msg.type == RSB_SUPERVISE_MOUNTED && fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	if (msg.type == RSB_SUPERVISE_STOP)
		return rsb_diag_set(diag, -EINTR, "stopped before it was mounted");
	return rsb_diag_set(diag, msg.error < 0 ? msg.error : -EPROTO, "%s", msg.text);
}

/* Tells who waits for the mount how it went, once. */
static void
report(struct supervisor *s, int error, const char *text)
{
	if (s->opts->foreground && !s->reported && error < 0)
		rsb_err("%s", text && text[0] ? text : strerror(-error));
	s->reported = true;
	if (s->status_fd < 0)
		return;
	/* Nobody to tell is no harm. */
	(void)rsb_supervise_send(s->status_fd, RSB_SUPERVISE_READY, error, text);
	(void)close(s->status_fd);
	s->status_fd = -1;
	/* From here on the log is all: who started us may be waiting for its stderr to end. */
	if (error >= 0)
		(void)dup2(0, 2);
}

static void
do_mount(struct supervisor *s)
{
	struct rsb_supervise_msg msg = { .type = RSB_SUPERVISE_MOUNTED };
	struct rsb_diag diag = { .text = "" };
	int r;

	r = rsb_mount_do(&s->opts->mount, &s->fuse_fd, &diag);
	s->mounted = r >= 0;
	msg.error = r < 0 ? r : 0;
	if (r < 0)
		(void)snprintf(msg.text, sizeof(msg.text), "%s", rsb_diag_text(&diag, r));
	/* A daemon that is gone meanwhile is seen by its end. */
	(void)rsb_fd_send(s->sock, &msg, sizeof(msg), &s->fuse_fd, r < 0 ? 0 : 1);
}

static void
do_unmount(struct supervisor *s, bool lazy)
{
	const struct rsb_mount_opts *mount = &s->opts->mount;
	int r = 0;

	/* Somebody may have unmounted it and put another thing there. */
	if (rsb_mountpoint_is_ours(mount->mountpoint, mount->name))
		r = rsb_mount_undo(mount->mountpoint, lazy);
	s->unmounted = r >= 0;
	(void)rsb_supervise_send(s->sock, RSB_SUPERVISE_UNMOUNTED, r, NULL);
}

static void
on_message(struct supervisor *s)
{
	struct rsb_supervise_msg msg;
	int fd;
	int r;

	r = rsb_supervise_recv(s->sock, &msg, &fd);
	if (fd >= 0)
		(void)close(fd);
	if (r <= 0) {
		/* Its end comes by SIGCHLD. */
		(void)close(s->sock);
		s->sock = -1;
		return;
	}
	switch (msg.type) {
	case RSB_SUPERVISE_MOUNT:
		do_mount(s);
		break;
	case RSB_SUPERVISE_READY:
		report(s, msg.error, msg.text);
		break;
	case RSB_SUPERVISE_UNMOUNT:
		do_unmount(s, msg.error != 0);
		break;
	default:
		break;
	}
}

/* ---- after the daemon ---- */

static void
answer_eio(int fd, uint64_t unique)
{
	struct fuse_out_header head = { .len = sizeof(head), .error = -EIO, .unique = unique };

	/* ENOENT: it was answered. */
	(void)!write(fd, &head, sizeof(head));
}

/* Requests that nobody has read. */
static void
answer_queued(struct supervisor *s, uint8_t *buf)
{
	struct fuse_in_header head;

	while (read(s->fuse_fd, buf, REQUEST_MAX) >= (ssize_t)sizeof(head)) {
		memcpy(&head, buf, sizeof(head));
		if (head.opcode != FUSE_FORGET && head.opcode != FUSE_BATCH_FORGET &&
			head.opcode != FUSE_INTERRUPT)
			answer_eio(s->fuse_fd, head.unique);
	}
}

/*
 * Answers all that the kernel waits for. Without that the notifier could hang in the kernel for
 * ever, and with its copy of the descriptor the connection would never end.
 */
static void
answer_all(struct supervisor *s)
{
	rsb_autofree uint8_t *buf = malloc(REQUEST_MAX);

	if (!buf || rsb_fd_nonblock(s->fuse_fd, true) < 0)
		return;
	for (uint32_t i = 0; i < RSB_SHARED_FLIGHT_MAX; i++) {
		if (s->shared->flights[i].unique)
			answer_eio(s->fuse_fd, s->shared->flights[i].unique);
	}
	for (int i = 0; i < 100; i++) {
		struct pollfd fd = { .fd = s->fuse_fd, .events = POLLIN };

		answer_queued(s, buf);
		if (waitpid(s->notifier, NULL, WNOHANG) != 0)
			break;
		(void)poll(&fd, 1, 20);
	}
}

/* No dead mount stays, whatever became of the daemon. */
static void
clean_up(struct supervisor *s)
{
	const struct rsb_mount_opts *mount = &s->opts->mount;

	if (s->mounted && !s->unmounted && rsb_mountpoint_is_ours(mount->mountpoint, mount->name) &&
		rsb_mount_undo(mount->mountpoint, true) < 0)
		rsb_err("'%s' could not be unmounted", mount->mountpoint);
	if (s->fuse_fd >= 0) {
		answer_all(s);
		(void)close(s->fuse_fd);
	}
	(void)kill(s->notifier, SIGKILL);
	(void)waitpid(s->notifier, NULL, 0);
}

/* 1: the daemon has ended. */
static int
reap(struct supervisor *s)
{
	int status;

	if (waitpid(s->daemon, &status, WNOHANG) != s->daemon)
		return 0;
	s->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	if (WIFSIGNALED(status)) {
		rsb_err("the daemon was ended by signal %d: unmounting", WTERMSIG(status));
		report(s, -EIO, "the daemon was ended by a signal");
	}
	report(s, -EIO, "the daemon ended without a reason");
	return 1;
}

static void
on_signal(struct supervisor *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info) || info.ssi_signo == SIGCHLD)
		return;
	if (s->kill_ns || s->sock < 0)
		return;
	s->kill_ns = rsb_now_ns() + STOP_NS;
	(void)rsb_supervise_send(s->sock, RSB_SUPERVISE_STOP, 0, NULL);
}

static int
supervise_loop(struct supervisor *s)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = s->signal_fd, .events = POLLIN },
			{ .fd = s->sock, .events = POLLIN },
		};

		if (poll(fds, 2, s->kill_ns ? 1000 : -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			on_message(s);
		if (fds[0].revents)
			on_signal(s);
		if (reap(s))
			return 0;
		if (s->kill_ns && rsb_now_ns() > s->kill_ns)
			(void)kill(s->daemon, SIGKILL);
	}
}

/* ---- before it ---- */

/*
 * The forks below end by exit(3), not _exit(2): there were no threads and nothing is in stdio's
 * buffers before them, and a leak checker looks at the end of each.
 */

static pid_t
start_notifier(int sock, bool foreground)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	rsb_spawn_reset_signals();
	rsb_spawn_close_fds(&sock, 1);
	if (!foreground)
		(void)dup2(0, 2);
	(void)prctl(PR_SET_NAME, "rsb-notify");
	/* The terminal's signals are the supervisor's business. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	rsb_notify_main(sock);
	exit(0);
}

/* The daemon's process: keeps its two sockets, the log, and what opts->arg may have open. */
static pid_t
start_daemon(struct supervisor *s, int sock, int notify_sock)
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
	exit(s->opts->daemon(s->opts->arg, s->shared, sock, notify_sock));
}

static int
start_all(struct supervisor *s)
{
	int to_daemon[2];
	int to_notifier[2];
	sigset_t mask;

	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGCHLD);
	(void)sigaddset(&mask, SIGTERM);
	(void)sigaddset(&mask, SIGINT);
	(void)sigaddset(&mask, SIGHUP);
	(void)signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return -errno;
	s->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, to_daemon) < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, to_notifier) < 0)
		return -errno;
	s->sock = to_daemon[0];
	s->notifier = start_notifier(to_notifier[1], s->opts->foreground);
	if (s->notifier < 0)
		return -errno;
	(void)close(to_notifier[1]);
	s->daemon = start_daemon(s, to_daemon[1], to_notifier[0]);
	if (s->daemon < 0)
		return -errno;
	(void)close(to_daemon[1]);
	(void)close(to_notifier[0]);
	return 0;
}

/* The supervisor's whole life. */
static int
supervise_main(const struct rsb_supervise *opts, int status_fd)
{
	struct supervisor s = {
		.opts = opts,
		.sock = -1,
		.signal_fd = -1,
		.status_fd = status_fd,
		.fuse_fd = -1,
	};
	int r;

	(void)prctl(PR_SET_NAME, "rsb-supervise");
	r = rsb_shared_new(&s.shared);
	if (r >= 0)
		r = start_all(&s);
	if (r < 0) {
		report(&s, r, NULL);
		return r;
	}
	r = supervise_loop(&s);
	clean_up(&s);
	rsb_shared_free(s.shared);
	return r < 0 ? r : s.exit_status;
}

/* In the background nothing of the caller's terminal or directory may be held. */
static void
detach(void)
{
	rsb_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setsid();
	if (chdir("/") < 0 || null < 0)
		return;
	(void)dup2(null, 0);
	(void)dup2(null, 1);
}

static int
wait_for_report(int sock, struct rsb_diag *diag)
{
	struct rsb_supervise_msg msg;
	int fd;
	int r;

	r = rsb_supervise_recv(sock, &msg, &fd);
	if (r <= 0)
		return rsb_diag_set(diag, r < 0 ? r : -EIO, "the supervisor ended at once");
	if (msg.error < 0)
		return rsb_diag_set(
			diag, msg.error, "%s", msg.text[0] ? msg.text : strerror(-msg.error));
	return 0;
}

int
rsb_supervise(const struct rsb_supervise *supervise, struct rsb_diag *diag)
{
	int pair[2];
	pid_t pid;
	int r;

	if (supervise->foreground) {
		r = supervise_main(supervise, -1);
		return r < 0 ? rsb_diag_set(diag, r, "%s", strerror(-r)) : r;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		(void)close(pair[0]);
		detach();
		r = supervise_main(supervise, pair[1]);
		exit(r < 0 ? 1 : r);
	}
	(void)close(pair[1]);
	r = wait_for_report(pair[0], diag);
	(void)close(pair[0]);
	return r;
}
