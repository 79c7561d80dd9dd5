/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "supervise"

#include "fuse/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fuse/handover.h"
#include "fuse/offspring.h"
#include "fuse/options.h"
#include "fuse/packet.h"
#include "fuse/settle.h"
#include "keeper/mountpoint.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/spawn.h"
#include "util/str.h"

#define STOP_NS (40 * RSB_NSEC_PER_SEC) /* from a signal to the end of patience */
#define CRASHES_MAX 5                   /* within CRASHES_NS: then it is given up */
#define CRASHES_NS (60 * RSB_NSEC_PER_SEC)

/* Tells who waits for the mount how it went, once. */
static void
report(struct rsb_supervisor *s, int error, const char *text)
{
	if (s->opts->foreground && !s->reported && error < 0)
		rsb_err("%s", text && text[0] ? text : strerror(-error));
	s->reported = true;
	if (s->status_fd < 0)
		return;
	/* Nobody to tell is no harm. */
	(void)rsb_packet_send(s->status_fd, RSB_PACKET_READY, error, text);
	(void)close(s->status_fd);
	s->status_fd = -1;
	/* From here on the log is all: who started us may be waiting for its stderr to end. */
	if (error >= 0)
		(void)dup2(0, 2);
}

static void
do_mount(struct rsb_supervisor *s)
{
	struct rsb_packet msg = { .type = RSB_PACKET_MOUNTED };
	struct rsb_diag diag = { .text = "" };
	int r;

	/* A daemon that takes over gets what is there. */
	r = s->mounted ? 0 : rsb_mount_do(&s->opts->mount, &s->fuse_fd, &diag);
	s->mounted = r >= 0;
	msg.error = r < 0 ? r : 0;
	if (r < 0)
		(void)snprintf(msg.text, sizeof(msg.text), "%s", rsb_diag_text(&diag, r));
	/* A daemon that is gone meanwhile is seen by its end. */
	(void)rsb_fd_send(s->sock, &msg, sizeof(msg), &s->fuse_fd, r < 0 ? 0 : 1);
}

static void
do_unmount(struct rsb_supervisor *s, bool lazy)
{
	const struct rsb_mount_opts *mount = &s->opts->mount;
	int r = 0;

	/* Somebody may have unmounted it and put another thing there. */
	if (rsb_mountpoint_is_ours(mount->mountpoint, mount->name))
		r = rsb_mount_undo(mount->mountpoint, lazy);
	s->unmounted = r >= 0;
	(void)rsb_packet_send(s->sock, RSB_PACKET_UNMOUNTED, r, NULL);
}

static void
on_message(struct rsb_supervisor *s)
{
	struct rsb_packet msg;
	int fd;
	int r;

	r = rsb_packet_recv(s->sock, &msg, &fd);
	if (r <= 0) {
		/* Its end comes by SIGCHLD. */
		(void)close(s->sock);
		s->sock = -1;
		return;
	}
	if (msg.type == RSB_PACKET_UPGRADE && fd >= 0) {
		rsb_handover_begin(s, fd);
		return;
	}
	if (fd >= 0)
		(void)close(fd);
	switch (msg.type) {
	case RSB_PACKET_MOUNT:
		do_mount(s);
		break;
	case RSB_PACKET_READY:
		/* Of one that was to go on with the mount. */
		if (msg.error < 0 && s->reported)
			rsb_err("%s", msg.text);
		report(s, msg.error, msg.text);
		if (msg.error >= 0)
			rsb_handover_ready(s);
		break;
	case RSB_PACKET_UNMOUNT:
		do_unmount(s, msg.error != 0);
		break;
	default:
		break;
	}
}

/* ---- after the daemon ---- */

/* No dead mount stays, whatever became of the daemon. */
static void
clean_up(struct rsb_supervisor *s)
{
	const struct rsb_mount_opts *mount = &s->opts->mount;

	if (s->mounted && !s->unmounted && rsb_mountpoint_is_ours(mount->mountpoint, mount->name) &&
		rsb_mount_undo(mount->mountpoint, true) < 0)
		rsb_err("'%s' could not be unmounted", mount->mountpoint);
	if (s->fuse_fd >= 0) {
		rsb_settle_all(s->fuse_fd, s->shared, s->notifier);
		(void)close(s->fuse_fd);
	}
	if (s->notifier <= 0)
		return;
	(void)kill(s->notifier, SIGKILL);
	(void)waitpid(s->notifier, NULL, 0);
}

/*
 * A crash can be survived: there is a mount, nobody wants it to end, and its kernel can be told to
 * drop all names, for which ones it has nobody knows any more.
 */
static bool
can_go_on(const struct rsb_supervisor *s)
{
	const struct rsb_shared_head *head = &s->shared->head;

	return s->mounted && !s->unmounted && !s->kill_ns && head->live && !head->no_epoch;
}

static bool
is_crash_loop(struct rsb_supervisor *s, uint64_t now_ns)
{
	size_t n = s->opts->crashes;
	uint64_t *oldest = &s->crashes_ns[n ? s->n_crash++ % n : 0];
	bool loop = !n || (*oldest && now_ns - *oldest < CRASHES_NS);

	*oldest = now_ns;
	return loop;
}

/* 1: the mount is given up; 0: another daemon goes on with it. */
static int
on_crash(struct rsb_supervisor *s, int signal)
{
	struct rsb_shared_head *head = &s->shared->head;

	head->n_restart++;
	head->last_signal = signal;
	rsb_err("the daemon was ended by signal %d", signal);
	if (can_go_on(s) && !is_crash_loop(s, rsb_now_ns())) {
		/* The notifier of before ends with its socket. */
		if (s->sock >= 0)
			(void)close(s->sock);
		s->sock = -1;
		if (rsb_offspring_start(s) >= 0)
			return 0;
	}
	rsb_err("the mount is given up");
	report(s, -EIO, "the daemon was ended by a signal");
	return 1;
}

/* What it said last may have come after the look at the socket, and before its end. */
static void
hear_out(struct rsb_supervisor *s)
{
	struct pollfd fd = { .events = POLLIN };

	while (s->sock >= 0) {
		fd.fd = s->sock;
		if (poll(&fd, 1, 0) <= 0)
			return;
		on_message(s);
	}
}

/* 1: the daemon has ended. */
static int
on_daemon_end(struct rsb_supervisor *s, int status)
{
	hear_out(s);
	s->daemon = 0;
	s->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	if (rsb_handover_runs(s) && !s->unmounted && rsb_handover_daemon_ended(s) >= 0)
		return 0;
	if (WIFSIGNALED(status))
		return on_crash(s, WTERMSIG(status));
	report(s, -EIO, "the daemon ended without a reason");
	return 1;
}

/* Whatever it was told and had not done is told again by the daemon. */
static void
on_notifier_end(struct rsb_supervisor *s)
{
	int sock = -1;
	int r;

	s->notifier = 0;
	if (s->kill_ns || s->sock < 0 || !s->mounted)
		return;
	r = rsb_offspring_notifier(s, &sock);
	if (r >= 0)
		r = rsb_packet_send_fd(s->sock, RSB_PACKET_NOTIFIER, sock);
	/* It ends with the daemon, too. */
	if (r >= 0)
		rsb_warn("the notifier ended; another one is started");
	else if (r != -EPIPE)
		(void)rsb_err_r(r, "there is no notifier: commands tell that the mount is late");
	if (sock >= 0)
		(void)close(sock);
}

/* 1: the daemon has ended. */
static int
reap(struct rsb_supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->notifier)
			on_notifier_end(s);
		else if (pid == s->daemon && on_daemon_end(s, status))
			return 1;
	}
	return 0;
}

static void
on_signal(struct rsb_supervisor *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info) || info.ssi_signo == SIGCHLD)
		return;
	if (s->kill_ns || s->sock < 0)
		return;
	s->kill_ns = rsb_now_ns() + STOP_NS;
	(void)rsb_packet_send(s->sock, RSB_PACKET_STOP, 0, NULL);
}

static int
supervise_loop(struct rsb_supervisor *s)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = s->signal_fd, .events = POLLIN },
			{ .fd = s->sock, .events = POLLIN },
		};

		if (poll(fds, 2, s->kill_ns || rsb_handover_runs(s) ? 1000 : -1) < 0 &&
			errno != EINTR)
			return -errno;
		if (fds[1].revents)
			on_message(s);
		if (fds[0].revents)
			on_signal(s);
		if (reap(s))
			return 0;
		rsb_handover_tick(s);
		if (s->kill_ns && rsb_now_ns() > s->kill_ns)
			(void)kill(s->daemon, SIGKILL);
	}
}

static int
watch_signals(struct rsb_supervisor *s)
{
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
	return s->signal_fd < 0 ? -errno : 0;
}

/* From when all is started to the end. */
static int
live(struct rsb_supervisor *s)
{
	int r = supervise_loop(s);

	clean_up(s);
	rsb_shared_free(s->shared);
	(void)close(s->shared_fd);
	return r < 0 ? r : s->exit_status;
}

int
rsb_supervise_go_on(const struct rsb_supervise *supervise, const struct rsb_takeover *takeover,
	struct rsb_diag *diag)
{
	struct rsb_supervisor s = {
		.opts = supervise,
		.shared_fd = takeover->shared_fd,
		.sock = takeover->sock,
		.status_fd = -1,
		.fuse_fd = takeover->fuse_fd,
		.daemon = takeover->daemon,
		.notifier = takeover->notifier,
		.program = -1,
		.reported = true,
		.mounted = true,
	};
	int r;

	(void)prctl(PR_SET_NAME, "rsb-supervise");
	r = rsb_shared_map(s.shared_fd, &s.shared);
	if (r >= 0)
		r = watch_signals(&s);
	if (r < 0)
		return rsb_diag_set(diag, r, "the mount cannot be gone on with: %s", strerror(-r));
	s.shared->head.n_upgrade++;
	rsb_shared_publish(&s.shared->head.upgrade, RSB_SHARED_UPGRADED);
	/* It is of the program before, which is replaced like one that died. */
	(void)kill(s.notifier, SIGKILL);
	return live(&s);
}

/* The supervisor's whole life. */
static int
supervise_main(const struct rsb_supervise *opts, int status_fd)
{
	struct rsb_supervisor s = {
		.opts = opts,
		.sock = -1,
		.signal_fd = -1,
		.status_fd = status_fd,
		.shared_fd = -1,
		.fuse_fd = -1,
		.program = -1,
	};
	int r;

	(void)prctl(PR_SET_NAME, "rsb-supervise");
	r = rsb_shared_new(&s.shared, &s.shared_fd);
	if (r >= 0)
		r = watch_signals(&s);
	if (r >= 0)
		r = rsb_offspring_start(&s);
	if (r < 0) {
		report(&s, r, NULL);
		return r;
	}
	return live(&s);
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
	struct rsb_packet msg;
	int fd;
	int r;

	r = rsb_packet_recv(sock, &msg, &fd);
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
