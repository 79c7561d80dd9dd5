/* SPDX-License-Identifier: MIT */
#include "util/leash.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/procstat.h"
#include "util/spawn.h"

#define FD_FREE_MIN 10
#define ROUND_MS 20
#define ROUNDS_MAX 500 /* what a disk or a mount holds is not waited for any longer */

struct hunt {
	int proc_fd;
	pid_t sid;
	int signal;
	unsigned int n;
};

static void
hunt_one(void *arg, const struct rsb_procstat *stat)
{
	struct hunt *hunt = arg;

	if (stat->sid == hunt->sid && stat->state != 'Z' && stat->state != 'X')
		hunt->n += rsb_procstat_signal(hunt->proc_fd, stat, hunt->signal);
}

/* Its leader was not waited for, so that no other session has its number. */
static void
kill_session(pid_t sid)
{
	struct hunt hunt = { .proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.sid = sid };

	for (unsigned int i = 0; i < ROUNDS_MAX; i++) {
		/* Works without /proc. */
		(void)kill(-sid, SIGKILL);
		/* Stopped first, they cannot fork away from the KILL that follows. */
		hunt.signal = SIGSTOP;
		rsb_procstat_each(hunt.proc_fd, hunt_one, &hunt);
		hunt.signal = SIGKILL;
		hunt.n = 0;
		rsb_procstat_each(hunt.proc_fd, hunt_one, &hunt);
		if (!hunt.n)
			return;
		(void)poll(NULL, 0, ROUND_MS);
	}
}

/* Our copies of descriptors would keep pipes open, and the directory busy. */
static void
let_go(int leash_fd)
{
	int null_fd;

	rsb_spawn_close_fds(&leash_fd, 1);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; null_fd >= 0 && i < 3; i++)
		(void)dup2(null_fd, i); /* what is left open is closed at our end */
	(void)!chdir("/");
}

static bool
has_ended(pid_t pid, int *ret_status)
{
	siginfo_t info = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		return errno != EINTR;
	if (info.si_pid != pid)
		return false;
	*ret_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	return true;
}

static rsb_noreturn void
hold(pid_t pid, int leash_fd)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .fd = leash_fd, .events = POLLIN } };
	struct signalfd_siginfo drained;
	int status = 128 + SIGKILL;
	sigset_t child;

	let_go(leash_fd);
	(void)prctl(PR_SET_NAME, "rsb-leash");
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	fds[0].fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	while (fds[0].fd >= 0 && !has_ended(pid, &status)) {
		(void)poll(fds, RSB_ARRAY_SIZE(fds), -1);
		(void)!read(fds[0].fd, &drained, sizeof(drained)); /* only says that it may have */
		if (fds[1].revents)
			break;
	}
	/* The program may end because who started it did: what it left is not left alone then. */
	if (fds[0].fd < 0 || poll(&fds[1], 1, 0) > 0)
		kill_session(pid);
	_exit(status);
}

int
rsb_leash_enter(int leash_fd)
{
	const struct sigaction act = { .sa_handler = SIG_DFL };
	pid_t pid;

	/* It may have the number of a standard one that was closed. */
	leash_fd = fcntl(leash_fd, F_DUPFD_CLOEXEC, FD_FREE_MIN);
	if (leash_fd < 0)
		return -errno;
	/* What a terminal sends is not for it. Who ignores SIGCHLD has no status of a child. */
	if (setsid() < 0 || sigaction(SIGCHLD, &act, NULL) < 0)
		return -errno;
	pid = _Fork();
	if (pid < 0)
		return -errno;
	if (pid > 0)
		hold(pid, leash_fd);
	return 0;
}
