/* SPDX-License-Identifier: MIT */
#include "util/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "util/cleanup.h"
#include "util/fd.h"
#include "util/leash.h"
#include "util/str.h"

/* Above the standard three, so that dup2(2) onto one cannot hit the source of another. */
#define FD_FREE_MIN 10
#define FD_SWEEP_MAX 65536u

void
rsb_spawn_reset_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;
	int sig;

	for (sig = 1; sig <= SIGRTMAX; sig++)
		(void)sigaction(sig, &sa, NULL); /* EINVAL for KILL, STOP and glibc's own two */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
close_range_by_hand(unsigned int first, unsigned int last)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur > FD_SWEEP_MAX)
		lim.rlim_cur = FD_SWEEP_MAX;
	for (; first <= last && first < lim.rlim_cur; first++)
		(void)close((int)first); /* most are not open */
}

/* Closes all from 3 up but keep[] and extra (-1: none). No memory: runs between fork and exec. */
static void
close_others(const int *keep, size_t n_keep, int extra)
{
	unsigned int first = 3;
	unsigned int next;
	size_t i;

	while (first <= INT_MAX) {
		next = (unsigned int)INT_MAX + 1;
		for (i = 0; i < n_keep; i++)
			if (keep[i] >= 0 && (unsigned int)keep[i] >= first)
				next = rsb_min(next, (unsigned int)keep[i]);
		if (extra >= 0 && (unsigned int)extra >= first)
			next = rsb_min(next, (unsigned int)extra);
		/* By number, as sandboxes with a kernel before 5.9 or with gVisor have none. */
		if (next > first && syscall(SYS_close_range, first, next - 1, 0) < 0)
			close_range_by_hand(first, next - 1);
		first = next + 1;
	}
}

void
rsb_spawn_close_fds(const int *keep, size_t n_keep)
{
	close_others(keep, n_keep, -1);
}

static int
set_stdio(const int stdio[3])
{
	int fds[3];
	int i;

	for (i = 0; i < 3; i++) {
		rsb_autoclose int null_fd = -1;
		int fd = stdio[i];

		if (fd < 0) {
			null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
			if (null_fd < 0)
				return -errno;
			fd = null_fd;
		}
		fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, FD_FREE_MIN);
		if (fds[i] < 0)
			return -errno;
	}
	for (i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			return -errno;
	return 0;
}

/* In the child: async-signal-safe calls only. Comes back with the errno that stopped it. */
static int
become(const struct rsb_spawn *spec, int error_fd)
{
	size_t i;
	int r;

	if (spec->setsid && setsid() < 0)
		return -errno;
	r = set_stdio(spec->stdio);
	if (r < 0)
		return r;
	for (i = 0; i < spec->n_keep; i++) {
		r = rsb_fd_cloexec(spec->keep[i], false);
		if (r < 0)
			return r;
	}
	close_others(spec->keep, spec->n_keep, error_fd);
	if (spec->cwd && chdir(spec->cwd) < 0)
		return -errno;
	rsb_spawn_reset_signals();
	(void)execvpe(spec->argv[0], (char *const *)spec->argv,
		spec->env ? (char *const *)spec->env : environ);
	return -errno;
}

static rsb_noreturn void
run_child(const struct rsb_spawn *spec, int error_fd)
{
	int r;

	/* A standard descriptor that was closed here may be what the pipe got. */
	r = fcntl(error_fd, F_DUPFD_CLOEXEC, FD_FREE_MIN);
	if (r >= 0)
		error_fd = r;
	r = spec->leash_fd ? rsb_leash_enter(*spec->leash_fd) : 0;
	if (r == 0)
		r = become(spec, error_fd);
	(void)rsb_fd_write_full(error_fd, &r, sizeof(r)); /* the status says enough then */
	_exit(127);
}

/* Waits until the child has become the program. 0, or the errno it sent. */
static int
await_exec(int error_fd)
{
	size_t size;
	int child_r;
	int r;

	r = rsb_fd_read_full(error_fd, &child_r, sizeof(child_r), &size);
	if (r < 0)
		return r;
	return size == sizeof(child_r) && child_r < 0 ? child_r : 0;
}

int
rsb_spawn(const struct rsb_spawn *spec, pid_t *ret_pid, int *ret_pidfd)
{
	rsb_autoclose int error_rd = -1;
	rsb_autoclose int error_wr = -1;
	rsb_autoclose int pidfd = -1;
	sigset_t all, old;
	int pipe_fds[2];
	pid_t pid;
	int r;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	error_rd = pipe_fds[0];
	error_wr = pipe_fds[1];

	/* No handler of ours may run in the child. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = fork();
	r = pid < 0 ? -errno : 0;
	if (pid == 0)
		run_child(spec, error_wr);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r < 0)
		return r;

	(void)close(rsb_steal_fd(&error_wr));
	r = await_exec(error_rd);
	if (r == 0 && ret_pidfd) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd < 0)
			r = -errno;
	}
	if (r < 0) {
		(void)kill(pid, SIGKILL); /* it is there until it is waited for */
		(void)rsb_spawn_wait(pid);
		return r;
	}
	*ret_pid = pid;
	if (ret_pidfd)
		*ret_pidfd = rsb_steal_fd(&pidfd);
	return 0;
}

int
rsb_spawn_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool
rsb_spawn_on_path(const char *path, const char *program)
{
	rsb_autofree char *copy = strdup(path ? path : "/usr/bin:/bin");
	char *save = NULL;

	for (char *dir = copy ? strtok_r(copy, ":", &save) : NULL; dir;
		dir = strtok_r(NULL, ":", &save)) {
		rsb_autofree char *file = rsb_str_path(dir, program);

		if (file && access(file, X_OK) == 0)
			return true;
	}
	return false;
}
