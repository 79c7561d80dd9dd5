/* SPDX-License-Identifier: MIT */
#include "sidecar/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/descend.h"
#include "sidecar/reaper.h"
#include "util/clock.h"
#include "util/spawn.h"

#define ROUND_NS (20 * RSB_NSEC_PER_MSEC)
#define SLOW_ROUND_NS RSB_NSEC_PER_SEC

struct super {
	int sock; /* -1: the sidecar is gone */
	int signal_fd;
	int proc_fd;
	int error_fd; /* -1: known how the start went */
	pid_t leader; /* 0: reaped */
	pid_t pgid;
	bool started;
	struct rsb_exec_failure failure;
	uint64_t kill_ns; /* when KILL begins; 0: it does not */
	/* When what is left counts as unkillable; 0: KILL has not begun, or it was told. */
	uint64_t bound_ns;
	uint64_t round_ns; /* the next KILL */
	struct rsb_procstat table[RSB_DESCEND_MAX];
};

static void
tell(struct super *s, enum rsb_warden_type type, int32_t a, int32_t b)
{
	const struct rsb_warden_msg msg = { .type = (int32_t)type, .a = a, .b = b };

	/* A failure means that the sidecar is gone, which the socket tells, too. */
	if (s->sock >= 0)
		(void)!send(s->sock, &msg, sizeof(msg), MSG_NOSIGNAL);
}

static void
read_error(struct super *s)
{
	ssize_t n = read(s->error_fd, &s->failure, sizeof(s->failure));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	(void)close(s->error_fd);
	s->error_fd = -1;
	if (n == (ssize_t)sizeof(s->failure))
		return; /* told when the child is gone */
	s->failure.stage = 0;
	s->started = true;
	tell(s, RSB_WARDEN_STARTED, s->pgid, 0);
}

static void
leader_ended(struct super *s, const siginfo_t *info)
{
	s->leader = 0;
	if (s->error_fd >= 0)
		read_error(s);
	if (s->started)
		tell(s, RSB_WARDEN_EXITED, info->si_code, info->si_status);
	else
		tell(s, RSB_WARDEN_FAILED, s->failure.stage, s->failure.error);
}

/* Ends the process when there is no child any more. */
static void
reap(struct super *s)
{
	struct signalfd_siginfo drained[8];

	(void)!read(s->signal_fd, drained, sizeof(drained)); /* only says that there is something */
	for (;;) {
		siginfo_t info = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0) {
			if (errno != ECHILD)
				return;
			if (s->started)
				tell(s, RSB_WARDEN_EMPTY, 0, 0);
			_exit(0);
		}
		if (info.si_pid == 0)
			return;
		if (info.si_pid == s->leader)
			leader_ended(s, &info);
	}
}

/* Stopped first, a tree cannot fork away from the KILL that follows. */
static void
kill_round(struct super *s, uint64_t now_ns)
{
	int left;

	if (s->leader)
		(void)kill(-s->leader,
			SIGKILL); /* unreaped, so the number is its own; works without /proc */
	(void)rsb_descend_signal(s->proc_fd, s->table, SIGSTOP, 0);
	left = rsb_descend_signal(s->proc_fd, s->table, SIGKILL, 0);
	if (s->bound_ns && now_ns >= s->bound_ns) {
		tell(s, RSB_WARDEN_UNKILLABLE, left, 0);
		s->bound_ns = 0;
	}
	s->round_ns = now_ns + (s->bound_ns ? ROUND_NS : SLOW_ROUND_NS);
}

static void
begin_kill(struct super *s, uint64_t now_ns, uint64_t grace_ns)
{
	uint64_t kill_ns = now_ns + grace_ns;

	if (s->round_ns) { /* already at it: only the bound is new */
		s->bound_ns = now_ns + RSB_REAPER_BOUND_NS;
		return;
	}
	if (s->kill_ns && s->kill_ns <= kill_ns)
		return;
	s->kill_ns = kill_ns;
	if (grace_ns == 0)
		return;
	/* Once to each, or a handler runs twice; the group alone is the way without /proc. */
	if (rsb_descend_signal(s->proc_fd, s->table, SIGTERM, 0) == 0 && s->leader)
		(void)kill(-s->leader, SIGTERM);
	/* A stopped process handles TERM only after CONT. */
	(void)rsb_descend_signal(s->proc_fd, s->table, SIGCONT, 0);
}

static void
send_signal(struct super *s, int signal, int to)
{
	if (to == RSB_SIGNAL_TREE)
		(void)rsb_descend_signal(s->proc_fd, s->table, signal, 0);
	else if (s->leader)
		(void)kill(to == RSB_SIGNAL_GROUP ? -s->leader : s->leader, signal);
	else if (to == RSB_SIGNAL_GROUP)
		(void)rsb_descend_signal(s->proc_fd, s->table, signal, s->pgid);
}

static void
read_order(struct super *s)
{
	struct rsb_warden_msg msg;
	ssize_t n = recv(s->sock, &msg, sizeof(msg), MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n != (ssize_t)sizeof(msg)) {
		(void)close(s->sock);
		s->sock = -1;
		begin_kill(s, rsb_now_ns(), 0);
	} else if (msg.type == RSB_WARDEN_SIGNAL) {
		send_signal(s, msg.a, msg.b);
	} else if (msg.type == RSB_WARDEN_KILL) {
		begin_kill(s, rsb_now_ns(), (uint64_t)msg.a * RSB_NSEC_PER_MSEC);
	}
}

/* Runs what is due; the time to what comes next, for poll(2). */
static int
tick(struct super *s)
{
	uint64_t now_ns = rsb_now_ns();
	uint64_t next_ns;

	if (!s->kill_ns)
		return -1;
	if (!s->round_ns && now_ns >= s->kill_ns) {
		s->bound_ns = now_ns + RSB_REAPER_BOUND_NS;
		s->round_ns = now_ns;
	}
	if (s->round_ns && now_ns >= s->round_ns)
		kill_round(s, now_ns);
	next_ns = s->round_ns ? s->round_ns : s->kill_ns;
	return (int)((next_ns - now_ns) / RSB_NSEC_PER_MSEC) + 1;
}

static rsb_noreturn void
serve(struct super *s)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = s->signal_fd, .events = POLLIN },
			{ .fd = s->sock, .events = POLLIN },
			{ .fd = s->error_fd, .events = POLLIN },
		};
		int timeout_ms = tick(s);

		if (poll(fds, RSB_ARRAY_SIZE(fds), timeout_ms) < 0)
			continue;
		if (fds[2].revents)
			read_error(s);
		if (fds[0].revents)
			reap(s);
		if (fds[1].revents)
			read_order(s);
	}
}

static int
start(struct super *s, const struct rsb_exec *exec)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	s->error_fd = fds[0];
	(void)fcntl(s->error_fd, F_SETFL, O_NONBLOCK); /* cannot fail on a pipe of ours */
	pid = _Fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		rsb_exec_become(exec, fds[1]);
	(void)close(fds[1]);
	s->leader = pid;
	s->pgid = pid;
	return 0;
}

/*
 * Our own copies of descriptors would keep pipes open: of the command, and of who waits for the
 * sidecar.
 */
static int
let_go(const struct rsb_exec *exec, int sock)
{
	const int keep[] = {
		sock,
		exec->stdio[0],
		exec->stdio[1],
		exec->stdio[2],
		exec->config->root_fd,
	};
	int null_fd;

	rsb_spawn_close_fds(keep, RSB_ARRAY_SIZE(keep));
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup2(null_fd, i) < 0)
			return -errno;
	return 0;
}

static int
set_up(struct super *s, const struct rsb_exec *exec)
{
	sigset_t child;
	int r;

	r = let_go(exec, s->sock);
	if (r < 0)
		return r;
	(void)prctl(PR_SET_NAME, "rsb-supervise");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	s->signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return -errno;
	/* Without /proc only the process group is reached, and what is left is told as such. */
	s->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return start(s, exec);
}

void
rsb_warden_run(const struct rsb_exec *exec, int sock)
{
	/* On the stack of this process, which grows on demand: memory cannot be asked for here. */
	struct super s;
	int r;

	s.sock = sock;
	s.error_fd = -1;
	s.leader = 0;
	s.started = false;
	s.kill_ns = 0;
	s.bound_ns = 0;
	s.round_ns = 0;
	r = set_up(&s, exec);
	if (r < 0) {
		tell(&s, RSB_WARDEN_FAILED, RSB_SPAWN_STAGE_SETUP, -r);
		_exit(0);
	}
	for (int i = 0; i < 3; i++)
		(void)close(exec->stdio[i]); /* the command has its own */
	serve(&s);
}
