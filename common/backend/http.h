/* SPDX-License-Identifier: MIT */
#ifndef RSB_HTTP_H
#define RSB_HTTP_H

/*
 * HTTP/1.1 requests with a deadline and a bounded answer, by libcurl. Keeps its connection
 * for the next request. A connection that was kept and broke before the first byte of the
 * answer is tried once more on a fresh one, as libcurl does. Redirects are not followed. One
 * thread at a time.
 */

#include <stdbool.h>

#include "util/buf.h"
#include "util/diag.h"

#define RSB_HTTP_BODY_MAX ((size_t)16 << 20)

struct rsb_http;

struct rsb_http_config {
	const char *ca_file; /* PEM; NULL: the system's */
	int abort_fd; /* borrowed; a request ends with -ECANCELED when it is readable; -1: none */
};

rsb_nodiscard int rsb_http_new(const struct rsb_http_config *config, struct rsb_http **ret_http);
void rsb_http_free(struct rsb_http *http); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_http *, rsb_http_free)

struct rsb_http_request {
	const char *method;
	const char *url;
	const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
	struct rsb_bytes body;
	int body_fd; /* with body empty and body_size > 0: the body, from its start */
	uint64_t body_size;
	uint64_t timeout_ns; /* for all of it */
	bool once;           /* on a connection of its own, so that it is never sent twice */
	/*
	 * Streams a 2xx answer instead of keeping it: 0 to go on, > 0 to hang up with
	 * success, negative errno to hang up with that. Requests of another rsb_http may be
	 * made from here.
	 */
	int (*data)(void *arg, struct rsb_bytes data);
	void *arg;
};

struct rsb_http_reply {
	int status;
	struct rsb_buf body; /* at most RSB_HTTP_BODY_MAX */
	bool has_retry_after;
	uint64_t retry_after_s;
	int64_t date_s;       /* the server's clock; 0 or less: not said */
	char next_token[513]; /* X-Next-Token; empty: none */
};

/*
 * 0: there is an answer, whatever its status (done or hung up, with data); the caller
 * releases reply->body, which is emptied first. -ENOTCONN: the request was not sent.
 * -EREMOTEIO: it broke, or the deadline passed, after the connection was made. -EKEYREJECTED:
 * the server's certificate is not accepted. -EMSGSIZE, -ECANCELED, -ENOMEM.
 */
rsb_nodiscard int rsb_http_do(struct rsb_http *http, const struct rsb_http_request *req,
	struct rsb_http_reply *reply, struct rsb_diag *diag);

/* Percent-encodes all but unreserved characters (RFC 3986 2.3); appended. */
rsb_nodiscard int rsb_http_escape(struct rsb_bytes text, struct rsb_buf *out);

#endif
