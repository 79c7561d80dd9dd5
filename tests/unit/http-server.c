/* SPDX-License-Identifier: MIT */
#include "tests/unit/http-server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "util/thread.h"

#define BUFFER_SIZE ((size_t)1 << 20)
#define TICK_MS 10

struct http_server {
	http_server_fn fn;
	void *arg;
	int fd;
	unsigned int port;
	pthread_t thread;
	struct rsb_mutex turn; /* held while fn runs */
	struct rsb_mutex lock;
	bool stop;           /* {lock} */
	unsigned int n_conn; /* {lock} */
	char *buffer;
};

static bool
stopped(struct http_server *server)
{
	bool stop;

	rsb_mutex_lock(&server->lock);
	stop = server->stop;
	rsb_mutex_unlock(&server->lock);
	return stop;
}

/* Waits for bytes; false: closed or stopped. */
static bool
read_more(struct http_server *server, int fd, size_t *size)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while (poll(&pfd, 1, TICK_MS) == 0)
		if (stopped(server))
			return false;
	n = read(fd, server->buffer + *size, BUFFER_SIZE - *size - 1);
	if (n <= 0)
		return false;
	*size += (size_t)n;
	server->buffer[*size] = '\0';
	return true;
}

/* One request after the other, as long as they come. */
static void
serve(struct http_server *server, int fd)
{
	struct http_server_request req = { .fd = fd };
	size_t size = 0;
	char *end, *length;
	int r;

	for (;;) {
		server->buffer[size] = '\0';
		while (!(end = strstr(server->buffer, "\r\n\r\n")))
			if (!read_more(server, fd, &size))
				return;
		end[2] = '\0';
		length = strstr(server->buffer, "Content-Length: ");
		req.head = server->buffer;
		req.body = end + 4;
		req.body_size = length ? (size_t)atol(length + 16) : 0;
		while (size < (size_t)(req.body - server->buffer) + req.body_size)
			if (!read_more(server, fd, &size))
				return;
		req.n_on_connection++;
		rsb_mutex_lock(&server->turn);
		r = server->fn(server->arg, &req);
		rsb_mutex_unlock(&server->turn);
		if (r < 0)
			return;
		size -= (size_t)(req.body - server->buffer) + req.body_size;
		memmove(server->buffer, req.body + req.body_size, size);
	}
}

static void *
run(void *arg)
{
	struct http_server *server = arg;
	struct pollfd pfd = { .fd = server->fd, .events = POLLIN };
	int fd;

	while (!stopped(server)) {
		if (poll(&pfd, 1, TICK_MS) <= 0)
			continue;
		fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		rsb_mutex_lock(&server->lock);
		server->n_conn++;
		rsb_mutex_unlock(&server->lock);
		serve(server, fd);
		close(fd);
	}
	return NULL;
}

struct http_server *
http_server_new(http_server_fn fn, void *arg)
{
	struct http_server *server = calloc(1, sizeof(*server));
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);

	ck_assert_ptr_nonnull(server);
	server->fn = fn;
	server->arg = arg;
	server->buffer = malloc(BUFFER_SIZE);
	ck_assert_ptr_nonnull(server->buffer);
	rsb_mutex_init(&server->lock);
	rsb_mutex_init(&server->turn);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(server->fd, 0);
	ck_assert_int_eq(bind(server->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(server->fd, 8), 0);
	ck_assert_int_eq(getsockname(server->fd, (struct sockaddr *)&addr, &len), 0);
	server->port = ntohs(addr.sin_port);
	ck_assert_int_eq(rsb_thread_start("http", run, server, &server->thread), 0);
	return server;
}

void
http_server_free(struct http_server *server)
{
	rsb_mutex_lock(&server->lock);
	server->stop = true;
	rsb_mutex_unlock(&server->lock);
	pthread_join(server->thread, NULL);
	close(server->fd);
	rsb_mutex_done(&server->turn);
	rsb_mutex_done(&server->lock);
	free(server->buffer);
	free(server);
}

void
http_server_sync(struct http_server *server)
{
	rsb_mutex_lock(&server->turn);
	rsb_mutex_unlock(&server->turn);
}

unsigned int
http_server_port(const struct http_server *server)
{
	return server->port;
}

unsigned int
http_server_connections(struct http_server *server)
{
	unsigned int n;

	rsb_mutex_lock(&server->lock);
	n = server->n_conn;
	rsb_mutex_unlock(&server->lock);
	return n;
}

void
http_server_answer(int fd, int status, const char *headers, const char *body)
{
	(void)dprintf(fd, "HTTP/1.1 %d Text\r\nContent-Length: %zu\r\n%s\r\n%s", status,
		strlen(body), headers, body);
}
