/* SPDX-License-Identifier: MIT */
#include "sidecar/local/host.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"

#include "sidecar/envd/service.h"
#include "sidecar/local/plane.h"
#include "sidecar/local/proxy.h"
#include "sidecar/local/proxyerr.h"
#include "sidecar/local/route.h"
#include "sidecar/local/upgrade.h"

#define RSB_LOG_MODULE "host"
#include "util/log.h"

struct pass_call {
	struct rsb_exchange exchange;
	struct rsb_proxy *proxy;
	struct rsb_upgrade *upgrade;
	struct rsb_route route;
};

/* ---- requests to a sandbox ---- */

/* A request that could not be passed on. Nothing of the answer was sent yet. */
static int
answer_failure(struct rsb_httpd_req *req, const struct rsb_route *route, int r)
{
	if (r == -ECONNREFUSED || r == -ETIMEDOUT)
		return rsb_proxyerr_port_closed(req, route->id, route->port);
	return rsb_proxyerr_not_found(req, route->id);
}

static int
pass_body(void *arg, struct rsb_httpd_req *req, struct rsb_bytes data)
{
	struct pass_call *call = rsb_httpd_data(req);

	(void)arg;
	return call->proxy ? rsb_proxy_body(call->proxy, data) : 0;
}

static void
pass_end(void *arg, struct rsb_httpd_req *req)
{
	struct pass_call *call = rsb_httpd_data(req);
	int r;

	(void)arg;
	if (!call->proxy)
		return;
	r = rsb_proxy_end(call->proxy);
	/* Without an answer the connection is closed, which is right when the client is gone. */
	if (r < 0 && r != -EPIPE)
		(void)!answer_failure(req, &call->route, -ECONNREFUSED);
}

static void
log_request(const struct rsb_httpd_req *req)
{
	/* Without the query, which may be signed. */
	rsb_info("%s %s %u", rsb_httpd_method(req), rsb_httpd_path(req), rsb_httpd_status(req));
}

static void
pass_done(void *arg, struct rsb_httpd_req *req)
{
	struct pass_call *call = rsb_httpd_data(req);

	(void)arg;
	rsb_proxy_free(call->proxy);
	rsb_upgrade_free(call->upgrade);
	free(call);
}

static const struct rsb_httpd_ops pass_ops = {
	.body = pass_body,
	.end = pass_end,
	.done = pass_done,
};

/* Calls that only the host may make. */
static bool
is_reserved(const struct rsb_httpd_req *req, const struct rsb_route *route)
{
	static const char *const paths[] = { "/init", "/freeze", "/unfreeze", "/collapse",
		"/fsfreeze", "/fsthaw", "/upgrade" };

	for (size_t i = 0; route->port == RSB_SERVICE_PORT && i < RSB_ARRAY_SIZE(paths); i++) {
		if (strcmp(rsb_httpd_path(req), paths[i]) == 0)
			return true;
	}
	return false;
}

static int
connect_sandbox(struct rsb_host *host, const struct rsb_route *route, struct rsb_inlet **ret_inlet)
{
	RSB_CLEANUP(rsb_sandbox_unrefp)
	struct rsb_sandbox *sandbox = rsb_sandboxes_find(host->sandboxes, route->id);

	return sandbox ? rsb_sandbox_connect(sandbox, route->port, ret_inlet) : -ENOENT;
}

static int
pass_begin(struct rsb_host *host, struct rsb_httpd_req *req, const struct rsb_route *route)
{
	struct pass_call *call;
	struct rsb_inlet *inlet;
	int r;

	if (is_reserved(req, route))
		return rsb_proxyerr_reserved(req);
	r = connect_sandbox(host, route, &inlet);
	if (r < 0)
		return answer_failure(req, route, r);
	call = rsb_new(struct pass_call);
	if (!call) {
		rsb_inlet_close(inlet);
		return -ENOMEM;
	}
	call->exchange.ops = &pass_ops;
	call->route = *route;
	rsb_httpd_set_data(req, call);
	if (!rsb_upgrade_wanted(req))
		return rsb_proxy_new(req, inlet, &call->proxy);
	r = rsb_upgrade_new(host->tunnels, req, inlet, &call->upgrade);
	return r < 0 ? answer_failure(req, route, -ECONNREFUSED) : 0;
}

/* ---- all requests ---- */

static int
on_begin(void *arg, struct rsb_httpd_req *req)
{
	struct rsb_host *host = arg;
	struct rsb_route route = rsb_route_find(rsb_httpd_header(req, "Host"),
		rsb_httpd_header(req, "E2b-Sandbox-Id"), rsb_httpd_header(req, "E2b-Sandbox-Port"));

	if (route.kind == RSB_ROUTE_BAD)
		return rsb_proxyerr_bad_route(req, route.error);
	if (route.kind == RSB_ROUTE_SANDBOX)
		return pass_begin(host, req, &route);
	return rsb_plane_begin(host, req);
}

static void
on_done(void *arg, struct rsb_httpd_req *req)
{
	log_request(req);
	rsb_exchange_done(arg, req);
}

static const struct rsb_httpd_ops host_ops = {
	.begin = on_begin,
	.body = rsb_exchange_body,
	.end = rsb_exchange_end,
	.done = on_done,
};

int
rsb_host_new(const struct rsb_hostopt *options, int listen_fd, struct rsb_host **ret_host)
{
	struct rsb_host *host = rsb_new(struct rsb_host);
	int r;

	if (!host) {
		(void)close(listen_fd);
		return -ENOMEM;
	}
	host->options = options;
	r = rsb_sandboxes_new(options->max, &host->sandboxes);
	if (r == 0)
		r = rsb_tunnels_new(&host->tunnels);
	if (r == 0)
		r = rsb_httpd_new(
			listen_fd, RSB_HOST_CONNECTIONS_MAX, &host_ops, host, &host->httpd);
	if (r < 0) {
		(void)close(listen_fd);
		rsb_host_free(host);
		return r;
	}
	*ret_host = host;
	return 0;
}

void
rsb_host_free(struct rsb_host *host)
{
	if (!host)
		return;
	/* In this order: what connections wait for ends first. */
	if (host->sandboxes)
		rsb_sandboxes_close(host->sandboxes);
	rsb_tunnels_free(host->tunnels);
	rsb_httpd_free(host->httpd);
	rsb_sandboxes_free(host->sandboxes);
	free(host);
}

bool
rsb_host_is_idle(struct rsb_host *host)
{
	return rsb_sandboxes_len(host->sandboxes) == 0 && rsb_httpd_n_connections(host->httpd) == 0;
}
