/* SPDX-License-Identifier: MIT */
#include "exec/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Until it has ended; the signals of set are blocked. */
static int
wait_end(pid_t pid, const sigset_t *set)
{
	int status = 0;

	for (;;) {
		const int sig = sigwaitinfo(set, NULL);
		const pid_t ended = waitpid(pid, &status, WNOHANG);

		if (ended == pid)
			return status;
		if (ended < 0)
			return -errno;
		if (sig > 0 && sig != SIGCHLD)
			(void)kill(
				pid, sig); /* a terminal sent it to both: one is enough to end it */
	}
}

int
rsb_interrupt_fork(struct rsb_interrupt_end *ret_end)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
	const struct timespec now = { 0 };
	sigset_t set, old;
	pid_t pid;
	int status;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(all); i++)
		(void)sigaddset(&set, all[i]);
	/* Who ignores it is not told of the end of children. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	/* What is buffered would be written twice. */
	(void)fflush(NULL);
	pid = fork();
	if (pid <= 0) {
		(void)sigprocmask(SIG_SETMASK, &old, NULL);
		return pid < 0 ? -errno : 0;
	}
	status = wait_end(pid, &set);
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (status < 0)
		return status;
	*ret_end = (struct rsb_interrupt_end){
		.status = WEXITSTATUS(status),
		.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
	};
	return 1;
}
