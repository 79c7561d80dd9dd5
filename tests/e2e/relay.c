/* SPDX-License-Identifier: MIT */
#include "tests/e2e/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "util/cleanup.h"
#include "util/thread.h"

#define CHUNK 16384

struct relay {
	uint16_t target;
	uint16_t port;
	int listen_fd;
	int wake[2]; /* closed at the end */
	pthread_t thread;
	struct rsb_mutex lock;
	size_t cut_after; /* {lock} */
	bool freeze;      /* {lock} */
	unsigned int n;   /* {lock} connections */
	int frozen[64];   /* {thread} */
	size_t n_frozen;  /* {thread} */
};

static int
connect_to(uint16_t port)
{
	const struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* With a reset, as a network that breaks. */
static void
slam(int fd)
{
	const struct linger linger = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	(void)close(fd);
}

/* Bytes that went through; -1: that side ended. */
static ssize_t
pass(int from, int to, size_t max)
{
	char data[CHUNK];
	ssize_t n = recv(from, data, rsb_min(sizeof(data), max), 0);
	ssize_t at = 0;

	while (at < n) {
		ssize_t m = send(to, data + at, (size_t)(n - at), MSG_NOSIGNAL);

		if (m < 0)
			return -1;
		at += m;
	}
	return n > 0 ? n : -1;
}

/* 1: freeze; 0: over. */
static int
serve(struct relay *relay, const int ends[2])
{
	size_t passed = 0;

	for (;;) {
		struct pollfd fds[] = {
			{ .fd = ends[0], .events = POLLIN },
			{ .fd = ends[1], .events = POLLIN },
			{ .fd = relay->wake[0], .events = POLLIN },
			{ .fd = relay->listen_fd, .events = POLLIN },
		};
		size_t cut_after;
		bool freeze;

		if (poll(fds, RSB_ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return 0;
		rsb_mutex_lock(&relay->lock);
		cut_after = relay->cut_after;
		freeze = relay->freeze;
		relay->freeze = false;
		rsb_mutex_unlock(&relay->lock);
		if (fds[2].revents)
			return 0;
		if (freeze || fds[3].revents)
			return 1;
		for (int i = 0; i < 2; i++) {
			ssize_t n = 0;

			if (cut_after && passed >= cut_after)
				return 0;
			if (fds[i].revents)
				n = pass(ends[i], ends[!i], cut_after ? cut_after - passed : CHUNK);
			if (n < 0)
				return 0;
			passed += (size_t)n;
		}
	}
}

static void *
run(void *arg)
{
	struct relay *relay = arg;
	int ends[2];

	while ((ends[0] = accept4(relay->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		ends[1] = connect_to(relay->target);
		rsb_mutex_lock(&relay->lock);
		relay->n++;
		rsb_mutex_unlock(&relay->lock);
		if (ends[1] >= 0 && serve(relay, ends) && relay->n_frozen < 62) {
			relay->frozen[relay->n_frozen++] = ends[0];
			relay->frozen[relay->n_frozen++] = ends[1];
			continue;
		}
		slam(ends[0]);
		if (ends[1] >= 0)
			slam(ends[1]);
	}
	return NULL;
}

struct relay *
relay_new(uint16_t target)
{
	struct relay *relay = rsb_new(struct relay);
	struct sockaddr_in sa = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(sa);

	ck_assert_ptr_nonnull(relay);
	relay->target = target;
	rsb_mutex_init(&relay->lock);
	relay->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(relay->listen_fd, (struct sockaddr *)&sa, size), 0);
	ck_assert_int_eq(listen(relay->listen_fd, 64), 0);
	ck_assert_int_eq(getsockname(relay->listen_fd, (struct sockaddr *)&sa, &size), 0);
	relay->port = ntohs(sa.sin_port);
	ck_assert_int_eq(pipe2(relay->wake, O_CLOEXEC), 0);
	ck_assert_int_eq(rsb_thread_start("relay", run, relay, &relay->thread), 0);
	return relay;
}

void
relay_free(struct relay *relay)
{
	if (!relay)
		return;
	(void)close(relay->wake[1]);
	(void)shutdown(relay->listen_fd, SHUT_RDWR);
	(void)pthread_join(relay->thread, NULL);
	(void)close(relay->listen_fd);
	(void)close(relay->wake[0]);
	for (size_t i = 0; i < relay->n_frozen; i++)
		(void)close(relay->frozen[i]);
	rsb_mutex_done(&relay->lock);
	free(relay);
}

uint16_t
relay_port(const struct relay *relay)
{
	return relay->port;
}

void
relay_cut_after(struct relay *relay, size_t size)
{
	rsb_mutex_lock(&relay->lock);
	relay->cut_after = size;
	rsb_mutex_unlock(&relay->lock);
}

void
relay_freeze(struct relay *relay)
{
	rsb_mutex_lock(&relay->lock);
	relay->freeze = true;
	rsb_mutex_unlock(&relay->lock);
}

unsigned int
relay_count(struct relay *relay)
{
	unsigned int n;

	rsb_mutex_lock(&relay->lock);
	n = relay->n;
	rsb_mutex_unlock(&relay->lock);
	return n;
}
