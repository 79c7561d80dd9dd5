/* SPDX-License-Identifier: MIT */
#ifndef RSB_HTTP_SERVER_H
#define RSB_HTTP_SERVER_H

/*
 * A server on loopback that answers as the test says, one connection after the other, each in
 * turn until it closes.
 */

#include <stddef.h>

struct http_server;

struct http_server_request {
	const char *head; /* request line and headers, NUL-terminated */
	const char *body;
	size_t body_size;
	unsigned int n_on_connection; /* this one included */
	int fd;                       /* to answer on */
};

/* Answers one request by writing to fd; 0: the connection stays, -1: close it. */
typedef int (*http_server_fn)(void *arg, const struct http_server_request *req);

struct http_server *http_server_new(http_server_fn fn, void *arg);
void http_server_free(struct http_server *server);
unsigned int http_server_port(const struct http_server *server);
unsigned int http_server_connections(struct http_server *server);
/* Until fn has returned: what it wrote can be read then. */
void http_server_sync(struct http_server *server);
/* A whole answer with Content-Length. headers: lines with their ends, or "". */
void http_server_answer(int fd, int status, const char *headers, const char *body);

#endif
