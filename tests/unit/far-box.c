/* SPDX-License-Identifier: MIT */
/* The process of the sidecar. */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/server.h"
#include "tests/unit/far.h"

/* Where the sidecar's process says that it stalls; -1: this is the test's. */
static int stall_fd = -1;

int __real_mkdirat(int dir_fd, const char *name, mode_t mode);
int __wrap_mkdirat(int dir_fd, const char *name, mode_t mode);

static void
stall(void)
{
	ck_assert_int_eq(write(stall_fd, "", 1), 1);
	for (;;)
		(void)pause();
}

/* A file system that never answers, for directories that are called so. */
int
__wrap_mkdirat(int dir_fd, const char *name, mode_t mode)
{
	int r;

	if (stall_fd >= 0 && strcmp(name, "stall before") == 0)
		stall();
	r = __real_mkdirat(dir_fd, name, mode);
	if (stall_fd >= 0 && strcmp(name, "stall after") == 0)
		stall();
	return r;
}

/* So pwritev2(2) is called where offsets have 64 bits. */
ssize_t __real_pwritev64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags);
ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags);

static bool
begins_with(const struct iovec *iov, const char *text)
{
	return iov->iov_len >= strlen(text) && memcmp(iov->iov_base, text, strlen(text)) == 0;
}

/* A slow one, so that a kill often comes between begin and end, or one that does not answer. */
ssize_t
__wrap_pwritev64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
	ssize_t r = __real_pwritev64v2(fd, iov, n, offset, flags);

	if (stall_fd >= 0 && begins_with(iov, "stall after"))
		stall();
	if (stall_fd >= 0)
		(void)poll(NULL, 0, 1);
	return r;
}

static rsb_noreturn void
run_sidecar(const struct far *far, int port_fd)
{
	struct rsb_server *server;
	struct rsb_loop *loop;
	uint16_t port;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	stall_fd = far->stall_fds[1];
	if (rsb_loop_new(rsb_clock_monotonic(), &loop) < 0 ||
		rsb_server_new(&far->config, &far->key, loop, &server) < 0 ||
		rsb_server_listen(server, "127.0.0.1", 0, &port, NULL) < 0 ||
		write(port_fd, &port, sizeof(port)) != (ssize_t)sizeof(port))
		_exit(1);
	(void)rsb_loop_run(loop);
	_exit(0);
}

void
far_box_start(struct far *far)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	far->pid = fork();
	ck_assert_int_ge(far->pid, 0);
	if (far->pid == 0)
		run_sidecar(far, fds[1]);
	(void)close(fds[1]);
	ck_assert_int_eq(read(fds[0], &far->port, sizeof(far->port)), sizeof(far->port));
	(void)close(fds[0]);
}

void
far_box_end(struct far *far)
{
	ck_assert_int_eq(kill(far->pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(far->pid, NULL, 0), far->pid);
}
