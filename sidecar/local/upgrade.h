/* SPDX-License-Identifier: MIT */
#ifndef RSB_UPGRADE_H
#define RSB_UPGRADE_H

/*
 * HTTP upgrades to a port of a sandbox: the request goes on as it is, and after a 101 the two
 * connections become a tunnel.
 */

#include "sidecar/envd/httpd.h"
#include "sidecar/local/tunnel.h"

#define RSB_UPGRADE_ANSWER_NS (30 * RSB_NSEC_PER_SEC)
#define RSB_UPGRADE_REQUEST_MAX ((size_t)128 << 10)
#define RSB_UPGRADE_BODY_MAX ((size_t)64 << 10) /* of an answer that is not 101 */

struct rsb_upgrade;

/* Whether the request asks for one. */
bool rsb_upgrade_wanted(const struct rsb_httpd_req *req);

/*
 * Sends the request to inlet (taken), waits for the answer's head and sets the request's
 * answer. -EBADMSG when the sandbox's answer is none, -ETIMEDOUT. Lives until its request is done.
 */
rsb_nodiscard int rsb_upgrade_new(struct rsb_tunnels *tunnels, struct rsb_httpd_req *req,
	struct rsb_inlet *inlet, struct rsb_upgrade **ret_upgrade);
/* NULL is fine. A tunnel that runs goes on. */
void rsb_upgrade_free(struct rsb_upgrade *upgrade);

#endif
