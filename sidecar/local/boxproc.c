/* SPDX-License-Identifier: MIT */
#include "sidecar/local/boxproc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/spawn.h"

#include "sidecar/envd/bootctl.h"
#include "sidecar/local/ask.h"

/* A monitor that does not end after its pid 1 was killed is killed itself. */
#define END_MS 10000

static int
spawn_it(struct rsb_boxproc *proc, const char *envd, struct rsb_diag *diag)
{
	const char *argv[] = { envd, "--boot", NULL };
	const char *env[] = { NULL };
	rsb_autoclose int ours = -1, theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	r = rsb_spawn(&(struct rsb_spawn){ .argv = argv,
			      .env = env,
			      .cwd = "/",
			      .stdio = { theirs, -1, STDERR_FILENO },
			      .setsid = 1 },
		&proc->pid, &proc->fd);
	if (r < 0)
		return rsb_diag_set(diag, r, "cannot run %s: %s", envd, rsb_diag_text(NULL, r));
	proc->control = rsb_steal_fd(&ours);
	return 0;
}

static int
await_ready(struct rsb_boxproc *proc, struct rsb_diag *diag)
{
	struct rsb_bootctl_ready ready;
	size_t n_fd = 1;
	int r;

	r = rsb_ask_wait(proc->control, RSB_BOXPROC_START_NS);
	if (r < 0)
		return rsb_diag_set(diag, r, "the sandbox did not start in time");
	r = rsb_fd_recv(proc->control, &ready, sizeof(ready), &proc->init_fd, &n_fd);
	if (r != (int)sizeof(ready))
		return rsb_diag_set(diag, -EIO, "the sandbox ended while it started");
	ready.text[sizeof(ready.text) - 1] = '\0';
	if (ready.r < 0)
		return rsb_diag_set(diag, -EIO, "%s", ready.text);
	return n_fd == 1 ? 0 : -EIO;
}

void
rsb_boxproc_end(struct rsb_boxproc *proc)
{
	struct pollfd p = { .fd = proc->fd, .events = POLLIN };

	if (proc->init_fd >= 0)
		(void)syscall(SYS_pidfd_send_signal, proc->init_fd, SIGKILL, NULL, 0);
	else
		(void)shutdown(proc->control, SHUT_RDWR);
	if (poll(&p, 1, END_MS) == 0)
		(void)syscall(SYS_pidfd_send_signal, proc->fd, SIGKILL, NULL, 0);
	(void)rsb_spawn_wait(proc->pid); /* how it ended says nothing new */
	rsb_boxgroup_done(&proc->cgroup);
}

int
rsb_boxproc_start(struct rsb_boxproc *proc, const char *envd, const char *id,
	struct rsb_bytes config, struct rsb_diag *diag)
{
	int r;

	rsb_boxgroup_find(&proc->cgroup, id);
	r = spawn_it(proc, envd, diag);
	if (r < 0)
		return r;
	r = rsb_fd_send(proc->control, config.data, config.size, NULL, 0);
	if (r >= 0)
		r = await_ready(proc, diag);
	if (r < 0)
		rsb_boxproc_end(proc);
	return r;
}

void
rsb_boxproc_done(struct rsb_boxproc *proc)
{
	const int fds[] = { proc->fd, proc->control, proc->init_fd };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(fds); i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
}
