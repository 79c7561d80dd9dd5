/* SPDX-License-Identifier: MIT */
#ifndef RSB_EXCHANGE_H
#define RSB_EXCHANGE_H

/*
 * Lets each route of a server have callbacks of its own: the first member of what a route keeps for
 * a request names them. Routes are chosen in the server's begin; a request without an exchange was
 * answered there.
 */

#include "sidecar/envd/httpd.h"

struct rsb_exchange {
	const struct rsb_httpd_ops *ops; /* begin is not used */
};

static inline int
rsb_exchange_body(void *arg, struct rsb_httpd_req *req, struct rsb_bytes data)
{
	struct rsb_exchange *exchange = rsb_httpd_data(req);

	return exchange ? exchange->ops->body(arg, req, data) : 0;
}

static inline void
rsb_exchange_end(void *arg, struct rsb_httpd_req *req)
{
	struct rsb_exchange *exchange = rsb_httpd_data(req);

	if (exchange)
		exchange->ops->end(arg, req);
}

static inline void
rsb_exchange_done(void *arg, struct rsb_httpd_req *req)
{
	struct rsb_exchange *exchange = rsb_httpd_data(req);

	if (exchange)
		exchange->ops->done(arg, req);
}

#endif
