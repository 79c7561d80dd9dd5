/* SPDX-License-Identifier: MIT */
#include "sidecar/local/ask.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/fd.h"

#include "sidecar/envd/bootctl.h"
#include "sidecar/envd/freezer.h"

/* The monitor gives up before. */
#define FREEZE_NS (RSB_FREEZER_NS + RSB_ASK_CONNECT_NS)

int
rsb_ask_wait(int fd, uint64_t timeout_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end = rsb_now_ns() + timeout_ns;

	for (;;) {
		uint64_t now = rsb_now_ns();
		int r;

		if (now >= end)
			return -ETIMEDOUT;
		r = poll(&p, 1, (int)((end - now) / RSB_NSEC_PER_MSEC) + 1);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

/* What the monitor answers, with its descriptor, if any, in *ret_fd. */
static int
ask(int control, const struct rsb_bootctl_ask *want, uint64_t wait_ns, int *ret_fd)
{
	rsb_autoclose int ours = -1, theirs = -1;
	struct rsb_bootctl_answer reply;
	size_t n_fd = 1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	if (rsb_fd_send(control, want, sizeof(*want), &theirs, 1) < 0)
		return -ENOTCONN;
	/* Ours is the last copy of the monitor's end but its own: its death is an end of file. */
	(void)close(rsb_steal_fd(&theirs));
	r = rsb_ask_wait(ours, wait_ns);
	if (r < 0)
		return r;
	if (rsb_fd_recv(ours, &reply, sizeof(reply), ret_fd, &n_fd) != (int)sizeof(reply))
		return -ENOTCONN;
	return reply.r;
}

static int
await_connected(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int error = 0;

	if (poll(&p, 1, (int)(RSB_ASK_CONNECT_NS / RSB_NSEC_PER_MSEC)) <= 0)
		return -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -errno;
	return -error;
}

static int
ask_socket(int control, const struct rsb_bootctl_ask *want, int *ret_fd)
{
	rsb_autoclose int fd = -1;
	int r = ask(control, want, RSB_ASK_CONNECT_NS, &fd);

	if (r < 0)
		return r;
	if (fd < 0)
		return -ENOTCONN;
	r = await_connected(fd);
	if (r < 0)
		return r;
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

int
rsb_ask_connect(int control, unsigned int port, int *ret_fd)
{
	struct rsb_bootctl_ask want = { .what = RSB_BOOTCTL_CONNECT, .port = port };
	int r = ask_socket(control, &want, ret_fd);

	if (r != -ECONNREFUSED)
		return r;
	want.ipv6 = 1;
	r = ask_socket(control, &want, ret_fd);
	return r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT || r == -ENETUNREACH ? -ECONNREFUSED : r;
}

int
rsb_ask_freeze(int control)
{
	const struct rsb_bootctl_ask want = { .what = RSB_BOOTCTL_FREEZE };
	rsb_autoclose int none = -1;

	return ask(control, &want, FREEZE_NS, &none);
}

int
rsb_ask_thaw(int control)
{
	const struct rsb_bootctl_ask want = { .what = RSB_BOOTCTL_THAW };
	rsb_autoclose int none = -1;

	return ask(control, &want, FREEZE_NS, &none);
}
