/* SPDX-License-Identifier: MIT */
#include "sidecar/reaper-super.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/warden.h"
#include "util/cleanup.h"

struct by_super {
	struct rsb_reaper base;
	pid_t pid; /* of the supervisor; 0: reaped */
	int sock;
	struct rsb_source *source;
	bool started;
	bool exited;
};

static struct by_super *
of(struct rsb_reaper *reaper)
{
	return rsb_container_of(reaper, struct by_super, base);
}

static void
on_exited(struct by_super *by, int code, int status)
{
	struct rsb_exit exit = {
		.exited = code == CLD_EXITED,
		.core = code == CLD_DUMPED,
	};

	if (exit.exited)
		exit.code = status;
	else
		exit.signal = status;
	by->exited = true;
	by->base.events->exited(by->base.arg, &exit);
}

static void
reap(struct by_super *by)
{
	if (by->pid == 0)
		return;
	/* It has closed its socket, which is the last thing that it does. */
	while (waitpid(by->pid, NULL, 0) < 0 && errno == EINTR)
		;
	by->pid = 0;
}

/*
 * The supervisor is gone: in order, or killed by somebody; then nobody knows what became of its
 * tree.
 */
static void
on_end(struct by_super *by)
{
	const struct rsb_exec_failure failure = { .stage = RSB_SPAWN_STAGE_SETUP, .error = EIO };
	const struct rsb_exit unknown = { .unknown = true };

	rsb_source_del(rsb_steal(&by->source));
	reap(by);
	if (!by->started) {
		by->base.events->started(by->base.arg, 0, &failure);
		return;
	}
	if (!by->exited)
		by->base.events->exited(by->base.arg, &unknown);
	by->base.events->empty(by->base.arg);
}

static void
on_failed(struct by_super *by, int32_t stage, int32_t error)
{
	const struct rsb_exec_failure failure = { .stage = stage, .error = error };

	rsb_source_del(rsb_steal(&by->source));
	reap(by);
	by->base.events->started(by->base.arg, 0, &failure);
}

static void
on_message(void *arg, uint32_t events rsb_unused)
{
	struct by_super *by = arg;
	struct rsb_warden_msg msg;
	ssize_t n = recv(by->sock, &msg, sizeof(msg), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(msg)) {
		on_end(by);
	} else if (msg.type == RSB_WARDEN_STARTED) {
		by->started = true;
		by->base.events->started(by->base.arg, msg.a, NULL);
	} else if (msg.type == RSB_WARDEN_FAILED) {
		on_failed(by, msg.a, msg.b);
	} else if (msg.type == RSB_WARDEN_EXITED) {
		on_exited(by, msg.a, msg.b);
	} else if (msg.type == RSB_WARDEN_UNKILLABLE) {
		by->base.events->unkillable(by->base.arg, (uint64_t)msg.a);
	}
	/* EMPTY needs no answer: the end of the socket follows. */
}

static int
order(struct by_super *by, enum rsb_warden_type type, int32_t a, int32_t b)
{
	const struct rsb_warden_msg msg = { .type = (int32_t)type, .a = a, .b = b };

	if (by->pid == 0 || send(by->sock, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -ESRCH;
	return 0;
}

static int
send_signal(struct rsb_reaper *reaper, int signal, uint64_t to)
{
	struct by_super *by = of(reaper);

	if (by->exited && to == RSB_SIGNAL_LEADER)
		return -ESRCH;
	return order(by, RSB_WARDEN_SIGNAL, signal, (int32_t)to);
}

static void
kill_tree(struct rsb_reaper *reaper, uint64_t grace_ns)
{
	uint64_t grace_ms = grace_ns / RSB_NSEC_PER_MSEC;

	/* If it is gone, its end is on the way. */
	(void)order(of(reaper), RSB_WARDEN_KILL, (int32_t)rsb_min(grace_ms, (uint64_t)INT_MAX), 0);
}

static void
free_reaper(struct rsb_reaper *reaper)
{
	struct by_super *by = of(reaper);

	rsb_source_del(by->source);
	/* A supervisor that still lives takes the end of the socket as the order to kill all. */
	rsb_cleanup_close(&by->sock);
	if (by->pid > 0)
		(void)waitpid(by->pid, NULL, WNOHANG);
	free(by);
}

static const struct rsb_reaper_ops ops = {
	.signal = send_signal,
	.kill = kill_tree,
	.free = free_reaper,
};

static int
fork_supervisor(struct by_super *by, const struct rsb_exec *exec)
{
	rsb_autoclose int theirs = -1;
	sigset_t all, old;
	int socks[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
		return -errno;
	by->sock = socks[0];
	theirs = socks[1];
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	by->pid = _Fork();
	r = by->pid < 0 ? -errno : 0;
	if (by->pid == 0)
		rsb_warden_run(exec, theirs);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

int
rsb_reaper_super_new(struct rsb_loop *loop, const struct rsb_exec *exec,
	const struct rsb_reaper_events *events, void *arg, struct rsb_reaper **ret_reaper)
{
	struct by_super *by = rsb_new(struct by_super);
	int r;

	if (!by)
		return -ENOMEM;
	by->base = (struct rsb_reaper){ .ops = &ops, .events = events, .arg = arg };
	by->sock = -1;
	r = fork_supervisor(by, exec);
	if (r == 0)
		r = rsb_loop_add(loop, by->sock, EPOLLIN, on_message, by, &by->source);
	if (r < 0) {
		free_reaper(&by->base);
		return r;
	}
	*ret_reaper = &by->base;
	return 0;
}
