/* SPDX-License-Identifier: MIT */
#ifndef RSB_HTTPD_H
#define RSB_HTTPD_H

/*
 * The HTTP/1.1 server of rsb-envd and rsb-local: the only home of libmicrohttpd. Each connection
 * has a thread of its own, so every callback may wait. Bodies are handed over as they arrive,
 * whether chunked or with a length; answers may be whole, a file, a stream or an upgrade.
 *
 * Order of callbacks for one request, all on its connection's thread: begin (headers are complete),
 * body (any number of times), end (no more body), done (sent, or the connection broke). A negative
 * result of begin or body breaks the connection. Once an answer is set, what is left of the body
 * is read and dropped, and body and end are not called.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "util/buf.h"

#define RSB_HTTPD_HEADERS_MAX ((size_t)64 << 10) /* request line and headers of one request */
#define RSB_HTTPD_STACK_SIZE ((size_t)256 << 10)
#define RSB_HTTPD_IDLE_SEC 620U

struct rsb_httpd;
struct rsb_httpd_req;

struct rsb_httpd_ops {
	int (*begin)(void *arg, struct rsb_httpd_req *req);
	int (*body)(void *arg, struct rsb_httpd_req *req, struct rsb_bytes data);
	void (*end)(void *arg, struct rsb_httpd_req *req);
	void (*done)(void *arg, struct rsb_httpd_req *req);
};

/* ops and arg are borrowed for the life of the server. listen_fd is taken on success. */
rsb_nodiscard int rsb_httpd_new(int listen_fd, unsigned int max_connections,
	const struct rsb_httpd_ops *ops, void *arg, struct rsb_httpd **ret_httpd);
/* Waits for the threads of all connections: end what they wait for first. NULL is fine. */
void rsb_httpd_free(struct rsb_httpd *httpd);
/* Open connections, upgraded ones included. Any thread. */
unsigned int rsb_httpd_n_connections(struct rsb_httpd *httpd);

/* The request. Strings live as long as it does. */
const char *rsb_httpd_method(const struct rsb_httpd_req *req);
const char *rsb_httpd_target(const struct rsb_httpd_req *req); /* raw path and query */
const char *rsb_httpd_path(const struct rsb_httpd_req *req);   /* raw path alone */
const char *rsb_httpd_header(const struct rsb_httpd_req *req, const char *name);
/* A query parameter, decoded; NULL when absent or when it holds a NUL. */
const char *rsb_httpd_query(const struct rsb_httpd_req *req, const char *name);
int rsb_httpd_client_fd(const struct rsb_httpd_req *req);       /* borrowed: for poll(2) only */
unsigned int rsb_httpd_status(const struct rsb_httpd_req *req); /* 0 before the answer is set */
bool rsb_httpd_has_body(const struct rsb_httpd_req *req);

typedef int (*rsb_httpd_header_fn)(void *arg, const char *name, const char *value);
/* Headers in the order received; stops at the first negative result and returns it. */
rsb_nodiscard int rsb_httpd_each_header(
	const struct rsb_httpd_req *req, rsb_httpd_header_fn fn, void *arg);

/* One pointer for the handler, NULL at first; freed by its done callback. */
void rsb_httpd_set_data(struct rsb_httpd_req *req, void *data);
void *rsb_httpd_data(const struct rsb_httpd_req *req);

/*
 * Answers: one for each request. Failure leaves the request without an answer, and the
 * connection is closed.
 */
rsb_nodiscard int rsb_httpd_answer(struct rsb_httpd_req *req, unsigned int status,
	const char *content_type, struct rsb_bytes body);
/* fd is taken. */
rsb_nodiscard int rsb_httpd_answer_fd(
	struct rsb_httpd_req *req, unsigned int status, int fd, uint64_t offset, uint64_t size);

/* Bytes written to out, 0 at the end, negative to break the connection. May wait. */
typedef ssize_t (*rsb_httpd_read_fn)(void *arg, uint8_t *out, size_t size);
#define RSB_HTTPD_UNKNOWN UINT64_MAX
/* Chunked when size is RSB_HTTPD_UNKNOWN; what read returns is sent at once. */
rsb_nodiscard int rsb_httpd_answer_stream(struct rsb_httpd_req *req, unsigned int status,
	uint64_t size, rsb_httpd_read_fn read, void *arg);

/*
 * 101, then fn gets the socket (borrowed until rsb_httpd_upgrade_close()) and the bytes that
 * arrived after the request. Runs on the connection's thread and may not wait.
 */
struct rsb_httpd_upgrade;
typedef void (*rsb_httpd_upgrade_fn)(
	void *arg, int fd, struct rsb_bytes early, struct rsb_httpd_upgrade *upgrade);
rsb_nodiscard int rsb_httpd_answer_upgrade(
	struct rsb_httpd_req *req, rsb_httpd_upgrade_fn fn, void *arg);
/* Closes the socket. Any thread, once. */
void rsb_httpd_upgrade_close(struct rsb_httpd_upgrade *upgrade);

/* Adds to the answer that is set. -EINVAL when the name or value cannot be a header. */
rsb_nodiscard int rsb_httpd_answer_header(
	struct rsb_httpd_req *req, const char *name, const char *value);

/* multipart/form-data, streamed: part may be called several times for one part, with its offset. */
struct rsb_httpd_multipart;
typedef int (*rsb_httpd_part_fn)(
	void *arg, const char *name, const char *filename, uint64_t offset, struct rsb_bytes data);
/* -EINVAL when the request has no usable boundary. */
rsb_nodiscard int rsb_httpd_multipart_new(struct rsb_httpd_req *req, rsb_httpd_part_fn part,
	void *arg, struct rsb_httpd_multipart **ret_multipart);
/* -EBADMSG, or the negative result of part. */
rsb_nodiscard int rsb_httpd_multipart_feed(
	struct rsb_httpd_multipart *multipart, struct rsb_bytes data);
/* NULL is fine. */
void rsb_httpd_multipart_free(struct rsb_httpd_multipart *multipart);

#endif
