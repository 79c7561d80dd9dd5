/* SPDX-License-Identifier: MIT */
#include "fuse/settle.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>

#include "util/fd.h"

#define ROUNDS 100
#define ROUND_MS 20

static void
answer_eio(int fd, uint64_t unique)
{
	struct fuse_out_header head = { .len = sizeof(head), .error = -EIO, .unique = unique };

	/* ENOENT: it was answered. */
	(void)!write(fd, &head, sizeof(head));
}

/* Requests that nobody has read. */
static void
answer_queued(int fd, uint8_t *buf)
{
	struct fuse_in_header head;

	while (read(fd, buf, RSB_SHARED_REQUEST_MAX) >= (ssize_t)sizeof(head)) {
		memcpy(&head, buf, sizeof(head));
		if (head.opcode != FUSE_FORGET && head.opcode != FUSE_BATCH_FORGET &&
			head.opcode != FUSE_INTERRUPT)
			answer_eio(fd, head.unique);
	}
}

static void
answer_known(int fd, const struct rsb_shared *shared)
{
	struct fuse_in_header hand;

	memcpy(&hand, shared->request, sizeof(hand));
	if (hand.unique)
		answer_eio(fd, hand.unique);
	for (uint32_t i = 0; i < shared->head.n_flight; i++) {
		if (shared->flights[i].state)
			answer_eio(fd, shared->flights[i].unique);
	}
}

void
rsb_settle_all(int fd, const struct rsb_shared *shared, pid_t notifier)
{
	rsb_autofree uint8_t *buf = malloc(RSB_SHARED_REQUEST_MAX);

	if (!buf || rsb_fd_nonblock(fd, true) < 0)
		return;
	answer_known(fd, shared);
	for (int i = 0; i < ROUNDS; i++) {
		struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

		answer_queued(fd, buf);
		if (notifier <= 0 || waitpid(notifier, NULL, WNOHANG) != 0)
			break;
		(void)poll(&poll_fd, 1, ROUND_MS);
	}
}
