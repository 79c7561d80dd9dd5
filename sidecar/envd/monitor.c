/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/monitor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "util/cleanup.h"
#include "util/fd.h"

#include "sidecar/envd/boot.h"
#include "sidecar/envd/bootcfg.h"
#include "sidecar/envd/bootctl.h"
#include "sidecar/envd/boxgroup.h"
#include "sidecar/envd/freezer.h"

struct monitor {
	int control;
	struct rsb_boot boot;
	struct rsb_boxgroup cgroup;
	struct rsb_freezer freezer;
};

/* ---- sockets into the sandbox ---- */

/* Non-blocking, so that a full accept queue inside cannot hold the monitor. */
static int
connect_port(const struct rsb_bootctl_ask *want, int *ret_fd)
{
	struct sockaddr_in in4 = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)want->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)want->port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};
	const struct sockaddr *addr =
		want->ipv6 ? (struct sockaddr *)&in6 : (struct sockaddr *)&in4;
	socklen_t size = want->ipv6 ? sizeof(in6) : sizeof(in4);
	rsb_autoclose int fd =
		socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, addr, size) < 0 && errno != EINPROGRESS)
		return -errno;
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

/* 0, or -EPIPE when rsb-local is gone. */
static int
serve_control(struct monitor *m)
{
	struct rsb_bootctl_ask want;
	struct rsb_bootctl_answer reply = { 0 };
	rsb_autoclose int answer = -1, fd = -1;
	size_t n_fd = 1;
	int r;

	r = rsb_fd_recv(m->control, &want, sizeof(want), &answer, &n_fd);
	if (r == 0)
		return -EPIPE;
	if (r != (int)sizeof(want) || n_fd != 1)
		return r < 0 && r != -EINTR && r != -EAGAIN ? -EPIPE : 0;
	if (want.what == RSB_BOOTCTL_CONNECT)
		reply.r = connect_port(&want, &fd);
	else if (want.what == RSB_BOOTCTL_FREEZE)
		reply.r = rsb_freezer_freeze(&m->freezer);
	else
		rsb_freezer_thaw(&m->freezer);
	/* The asker may have given up; that is its own business. */
	(void)rsb_fd_send(answer, &reply, sizeof(reply), &fd, fd >= 0 ? 1 : 0);
	return 0;
}

static void
serve(struct monitor *m)
{
	struct pollfd fds[2] = {
		{ .fd = m->control, .events = POLLIN },
		{ .fd = m->boot.pidfd, .events = POLLIN },
	};

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents)
			return;
		if (fds[0].revents && serve_control(m) < 0)
			return;
	}
}

/* ---- start and end ---- */

static int
read_config(
	struct monitor *m, struct rsb_bootcfg *ret_cfg, struct rsb_buf *text, struct rsb_diag *diag)
{
	size_t n_fd = 0;
	uint8_t *tail;
	int r;

	r = rsb_buf_reserve(text, RSB_BOOTCFG_MAX, &tail);
	if (r < 0)
		return r;
	r = rsb_fd_recv(m->control, tail, RSB_BOOTCFG_MAX, NULL, &n_fd);
	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	rsb_buf_commit(text, (size_t)r);
	return rsb_bootcfg_parse(rsb_buf_view(text), ret_cfg, diag);
}

static int
start(struct monitor *m, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_BOOTCFG_MAX };
	RSB_CLEANUP(rsb_bootcfg_done) struct rsb_bootcfg cfg = { 0 };
	int r;

	r = read_config(m, &cfg, &text, diag);
	if (r < 0)
		return r;
	rsb_boxgroup_init(&m->cgroup, cfg.id);
	r = rsb_boot_start(&m->boot, &cfg, rsb_buf_view(&text), &m->cgroup, diag);
	if (r < 0)
		return r;
	m->freezer.init = m->boot.pid;
	/* From here the sockets that this process makes are the sandbox's. */
	if (setns(m->boot.pidfd, CLONE_NEWNET) < 0)
		return rsb_diag_set(
			diag, -errno, "cannot reach the sandbox's network: %s", strerror(errno));
	return 0;
}

/* It ends by KILL, ours or that of whoever runs the host; anything else is a crash. */
static void
say_how_it_ended(int status)
{
	if (WIFEXITED(status))
		(void)fprintf(stderr, "rsb-envd: process 1 of a sandbox ended with status %d\n",
			WEXITSTATUS(status));
	else if (WTERMSIG(status) != SIGKILL)
		(void)fprintf(stderr, "rsb-envd: process 1 of a sandbox was ended by signal %d\n",
			WTERMSIG(status));
}

static void
finish(struct monitor *m)
{
	int status = SIGKILL;

	if (m->boot.pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, m->boot.pidfd, SIGKILL, NULL, 0);
		/* Returns when every process of the pid namespace is gone, as pid 1 ends last. */
		while (waitpid(m->boot.pid, &status, 0) < 0 && errno == EINTR)
			;
		(void)close(m->boot.pidfd);
		say_how_it_ended(status);
	}
	rsb_boxgroup_done(&m->cgroup);
	rsb_freezer_done(&m->freezer);
}

int
rsb_monitor_run(int control)
{
	struct monitor m = { .control = control, .boot = { .pidfd = -1 } };
	struct rsb_bootctl_ready ready = { 0 };
	struct rsb_diag diag = { 0 };

	m.freezer.cgroup = &m.cgroup;
	ready.r = start(&m, &diag);
	if (ready.r < 0)
		(void)snprintf(ready.text, sizeof(ready.text), "%s", rsb_diag_text(&diag, ready.r));
	if (rsb_fd_send(control, &ready, sizeof(ready), &m.boot.pidfd, ready.r < 0 ? 0 : 1) > 0 &&
		ready.r == 0)
		serve(&m);
	finish(&m);
	(void)close(control);
	return ready.r < 0;
}
