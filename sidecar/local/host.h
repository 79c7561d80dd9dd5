/* SPDX-License-Identifier: MIT */
#ifndef RSB_HOST_H
#define RSB_HOST_H

/*
 * The one port: control plane, envd of each sandbox and their other ports, told apart by route.h.
 */

#include "util/secret.h"

#include "sidecar/envd/exchange.h"
#include "sidecar/envd/httpd.h"
#include "sidecar/local/hostopt.h"
#include "sidecar/local/sandboxes.h"
#include "sidecar/local/tunnel.h"

#define RSB_HOST_CONNECTIONS_MAX 1024U

struct rsb_host {
	const struct rsb_hostopt *options;
	struct rsb_sandboxes *sandboxes;
	struct rsb_tunnels *tunnels;
	struct rsb_httpd *httpd;
};

/* listen_fd is taken; options is borrowed. */
rsb_nodiscard int rsb_host_new(
	const struct rsb_hostopt *options, int listen_fd, struct rsb_host **ret_host);
/* Kills all sandboxes and waits for all connections to end. NULL is fine. */
void rsb_host_free(struct rsb_host *host);

/* Nothing exists and nobody is connected. */
bool rsb_host_is_idle(struct rsb_host *host);

#endif
