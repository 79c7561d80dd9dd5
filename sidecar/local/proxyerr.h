/* SPDX-License-Identifier: MIT */
#ifndef RSB_PROXYERR_H
#define RSB_PROXYERR_H

/* What the proxy says when a sandbox does not: errors in the form that clients look for. */

#include "sidecar/envd/httpd.h"

/* 502: no such sandbox, or it is not running. */
rsb_nodiscard int rsb_proxyerr_not_found(struct rsb_httpd_req *req, const char *id);
/* 502: nothing listens. */
rsb_nodiscard int rsb_proxyerr_port_closed(
	struct rsb_httpd_req *req, const char *id, unsigned int port);
/* 404: a route that envd keeps for its host. */
rsb_nodiscard int rsb_proxyerr_reserved(struct rsb_httpd_req *req);
/* 400, plain text. text is static. */
rsb_nodiscard int rsb_proxyerr_bad_route(struct rsb_httpd_req *req, const char *text);

#endif
