/* SPDX-License-Identifier: MIT */
#ifndef RSB_PROXY_H
#define RSB_PROXY_H

/*
 * Passes one request on to a port of a sandbox and its answer back, both as streams with bounded
 * memory. libcurl speaks to the sandbox; it runs on the request's own thread, whenever that has
 * something to give or to take.
 */

#include "sidecar/envd/httpd.h"
#include "sidecar/local/inlet.h"

#define RSB_PROXY_ANSWER_HEADERS_MAX ((size_t)64 << 10)
#define RSB_PROXY_BUFFER_HIGH ((size_t)256 << 10)

struct rsb_proxy;

/* inlet is taken. req outlives the proxy. */
rsb_nodiscard int rsb_proxy_new(
	struct rsb_httpd_req *req, struct rsb_inlet *inlet, struct rsb_proxy **ret_proxy);
/* NULL is fine. */
void rsb_proxy_free(struct rsb_proxy *proxy);

/* Waits until the bytes are taken. They are dropped when the sandbox has answered already. */
rsb_nodiscard int rsb_proxy_body(struct rsb_proxy *proxy, struct rsb_bytes data);
/* The body is complete: waits for the answer's headers and sets the request's answer. */
rsb_nodiscard int rsb_proxy_end(struct rsb_proxy *proxy);

/* Once, before threads. */
rsb_nodiscard int rsb_proxy_global_init(void);

#endif
