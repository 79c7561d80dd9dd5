/* SPDX-License-Identifier: MIT */
#include "sidecar/reaper-cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"

struct by_cgroup {
	struct rsb_reaper base;
	struct rsb_loop *loop;
	struct rsb_cgroups *cgroups;
	struct rsb_cgroup cgroup;
	bool has_cgroup;
	bool populated;
	pid_t pid;
	int pidfd; /* -1: reaped */
	int error_fd;
	struct rsb_exec_failure failure;
	bool started;
	bool exited;
	bool emptied;
	bool killed; /* KILL was sent: the timer is the bound */
	uint64_t kill_ns;
	struct rsb_source *error_source;
	struct rsb_source *pid_source;
	struct rsb_source *events_source;
	struct rsb_timer *timer;
};

static struct by_cgroup *
of(struct rsb_reaper *reaper)
{
	return rsb_container_of(reaper, struct by_cgroup, base);
}

static void
check_empty(struct by_cgroup *by)
{
	if (!by->exited || by->populated || by->emptied)
		return;
	by->emptied = true;
	rsb_source_del(rsb_steal(&by->events_source));
	rsb_timer_set(by->timer, 0);
	by->base.events->empty(by->base.arg);
}

/* The child said what stopped it, or its end of the pipe went with execve(2). */
static void
read_error(struct by_cgroup *by)
{
	ssize_t n = read(by->error_fd, &by->failure, sizeof(by->failure));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	rsb_source_del(rsb_steal(&by->error_source));
	(void)close(rsb_steal_fd(&by->error_fd));
	if (n == (ssize_t)sizeof(by->failure))
		return; /* told when the child is gone */
	by->failure.stage = 0;
	by->started = true;
	by->base.events->started(by->base.arg, by->pid, NULL);
}

static void
on_error(void *arg, uint32_t events rsb_unused)
{
	read_error(arg);
}

static void
on_exit_of_leader(void *arg, uint32_t events rsb_unused)
{
	struct by_cgroup *by = arg;
	siginfo_t info = { .si_pid = 0 };
	struct rsb_exit exit = { .exited = false };

	/*
	 * Reaped at once: only this thread sends to it, and later sends look it up in the cgroup.
	 */
	if (waitid(P_PIDFD, (id_t)by->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
		return;
	rsb_source_del(rsb_steal(&by->pid_source));
	(void)close(rsb_steal_fd(&by->pidfd));
	if (!by->started && by->error_fd >= 0)
		read_error(by);
	if (!by->started) {
		by->base.events->started(by->base.arg, 0, &by->failure);
		return;
	}
	exit.exited = info.si_code == CLD_EXITED;
	exit.core = info.si_code == CLD_DUMPED;
	if (exit.exited)
		exit.code = info.si_status;
	else
		exit.signal = info.si_status;
	by->exited = true;
	by->base.events->exited(by->base.arg, &exit);
	check_empty(by);
}

static void
on_events(void *arg, uint32_t events rsb_unused)
{
	struct by_cgroup *by = arg;

	by->populated = rsb_cgroup_populated(&by->cgroup) != 0;
	check_empty(by);
}

static void
kill_now(struct by_cgroup *by)
{
	by->killed = true;
	/* The bound comes anyway, and then the count says what is left. */
	(void)rsb_cgroup_kill(&by->cgroup);
	rsb_timer_set(by->timer, rsb_loop_now(by->loop) + RSB_REAPER_BOUND_NS);
}

static void
on_timer(void *arg)
{
	struct by_cgroup *by = arg;
	int n;

	if (!by->killed) {
		kill_now(by);
		return;
	}
	by->killed = false;
	by->kill_ns = 0;
	n = rsb_cgroup_count(&by->cgroup);
	by->base.events->unkillable(by->base.arg, n < 0 ? 1 : (uint64_t)n);
}

static int
send_signal(struct rsb_reaper *reaper, int signal, uint64_t to)
{
	struct by_cgroup *by = of(reaper);
	int r;

	/* An unreaped leader keeps its number, and so that of its group. */
	if (to == RSB_SIGNAL_LEADER || (to == RSB_SIGNAL_GROUP && by->pidfd >= 0)) {
		if (by->pidfd < 0)
			return -ESRCH;
		r = to == RSB_SIGNAL_GROUP
			    ? kill(-by->pid, signal)
			    : (int)syscall(SYS_pidfd_send_signal, by->pidfd, signal, NULL, 0);
		return r < 0 ? -errno : 0;
	}
	r = rsb_cgroup_signal(&by->cgroup, signal, to == RSB_SIGNAL_GROUP ? by->pid : 0);
	if (r < 0)
		return r;
	return r == 0 ? -ESRCH : 0;
}

static void
kill_tree(struct rsb_reaper *reaper, uint64_t grace_ns)
{
	struct by_cgroup *by = of(reaper);
	uint64_t kill_ns = rsb_loop_now(by->loop) + grace_ns;

	if (by->killed || by->emptied || (by->kill_ns && by->kill_ns <= kill_ns))
		return;
	by->kill_ns = kill_ns;
	if (grace_ns == 0) {
		kill_now(by);
		return;
	}
	/*
	 * A stopped process handles TERM only after CONT. What cannot be reached so is killed
	 * later.
	 */
	(void)rsb_cgroup_signal(&by->cgroup, SIGTERM, 0);
	(void)rsb_cgroup_signal(&by->cgroup, SIGCONT, 0);
	rsb_timer_set(by->timer, kill_ns);
}

static void
free_reaper(struct rsb_reaper *reaper)
{
	struct by_cgroup *by = of(reaper);

	rsb_source_del(by->error_source);
	rsb_source_del(by->pid_source);
	rsb_source_del(by->events_source);
	rsb_timer_del(by->timer);
	rsb_cleanup_close(&by->error_fd);
	if (by->pidfd >= 0) {
		(void)rsb_cgroup_kill(&by->cgroup);
		(void)waitid(P_PIDFD, (id_t)by->pidfd, NULL, WEXITED | WNOHANG);
		(void)close(by->pidfd);
	}
	if (by->has_cgroup)
		rsb_cgroup_remove(by->cgroups, &by->cgroup);
	free(by);
}

static const struct rsb_reaper_ops ops = {
	.signal = send_signal,
	.kill = kill_tree,
	.free = free_reaper,
};

static int
fork_into(struct by_cgroup *by, const struct rsb_exec *exec)
{
	rsb_autoclose int error_wr = -1;
	int fds[2];
	int r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	by->error_fd = fds[0];
	error_wr = fds[1];
	if (fcntl(by->error_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = rsb_cgroup_fork(&by->cgroup, &by->pid, &by->pidfd);
	if (r == 0 && by->pid == 0)
		rsb_exec_become(exec, error_wr);
	return r;
}

static int
watch(struct by_cgroup *by)
{
	int r;

	r = rsb_timer_new(by->loop, on_timer, by, &by->timer);
	if (r < 0)
		return r;
	r = rsb_loop_add(by->loop, by->error_fd, EPOLLIN, on_error, by, &by->error_source);
	if (r < 0)
		return r;
	r = rsb_loop_add(by->loop, by->pidfd, EPOLLIN, on_exit_of_leader, by, &by->pid_source);
	if (r < 0)
		return r;
	return rsb_loop_add(
		by->loop, by->cgroup.events_fd, EPOLLPRI, on_events, by, &by->events_source);
}

int
rsb_reaper_cgroup_new(struct rsb_loop *loop, const struct rsb_exec *exec,
	const struct rsb_reaper_events *events, void *arg, struct rsb_reaper **ret_reaper)
{
	struct by_cgroup *by = rsb_new(struct by_cgroup);
	int r;

	if (!by)
		return -ENOMEM;
	by->base = (struct rsb_reaper){ .ops = &ops, .events = events, .arg = arg };
	by->loop = loop;
	by->cgroups = exec->config->cgroups;
	by->pidfd = -1;
	by->error_fd = -1;
	by->populated = true;
	r = rsb_cgroup_make(by->cgroups, &by->cgroup);
	by->has_cgroup = r == 0;
	if (r == 0)
		r = fork_into(by, exec);
	if (r == 0)
		r = watch(by);
	if (r < 0) {
		free_reaper(&by->base);
		return r;
	}
	*ret_reaper = &by->base;
	return 0;
}
