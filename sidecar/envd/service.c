/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/service.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "util/cleanup.h"

#define INIT_MAX ((size_t)1 << 20)
#define RPC_PREFIX "/process.Process/"
#define BACKLOG 128

/* ---- /init ---- */

struct init_call {
	struct rsb_exchange exchange;
	struct rsb_buf body;
};

static int
init_body(void *arg, struct rsb_httpd_req *req, struct rsb_bytes data)
{
	struct init_call *call = rsb_httpd_data(req);

	(void)arg;
	if (rsb_buf_append(&call->body, data.data, data.size) < 0)
		return rsb_httpd_answer(req, 413, NULL, (struct rsb_bytes){ 0 });
	return 0;
}

static void
init_end(void *arg, struct rsb_httpd_req *req)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	struct rsb_service *service = arg;
	struct init_call *call = rsb_httpd_data(req);
	struct rsb_bytes text = rsb_buf_view(&call->body);
	int r = -ENOMEM;

	if (text.size == 0)
		json = rsb_json_new_object();
	else
		r = rsb_json_parse(text, &json, NULL);
	if (!json) {
		/* Failure closes the connection, here and below. */
		(void)!rsb_refuse(req, 400, "the body is no JSON");
		return;
	}
	r = rsb_settings_apply(service->settings, json, rsb_httpd_header(req, "X-Access-Token"));
	if (r < 0) {
		(void)!rsb_httpd_answer(req, r == -EACCES ? 401 : 400, "text/plain",
			rsb_bytes_str(r == -EACCES ? "access token is wrong\n" : "bad value\n"));
		return;
	}
	if (rsb_httpd_answer(req, 204, NULL, (struct rsb_bytes){ 0 }) == 0)
		(void)!rsb_httpd_answer_header(req, "X-Envd-Version", RSB_SERVICE_VERSION);
}

static void
init_done(void *arg, struct rsb_httpd_req *req)
{
	struct init_call *call = rsb_httpd_data(req);

	(void)arg;
	rsb_buf_done(&call->body);
	free(call);
}

static const struct rsb_httpd_ops init_ops = {
	.body = init_body,
	.end = init_end,
	.done = init_done,
};

static int
init_begin(struct rsb_httpd_req *req)
{
	struct init_call *call = rsb_new(struct init_call);

	if (!call)
		return -ENOMEM;
	call->exchange.ops = &init_ops;
	rsb_buf_init(&call->body, INIT_MAX);
	rsb_httpd_set_data(req, call);
	return 0;
}

/* ---- routes ---- */

static int
answer_health(struct rsb_httpd_req *req)
{
	int r = rsb_httpd_answer(req, 204, NULL, (struct rsb_bytes){ 0 });

	return r < 0 ? r : rsb_httpd_answer_header(req, "Cache-Control", "no-store");
}

static int
answer_envs(struct rsb_service *service, struct rsb_httpd_req *req)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *env = rsb_settings_env(service->settings);
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r = env ? rsb_json_write(env, false, &text) : rsb_buf_append(&text, "{}", 2);

	if (r < 0)
		return r;
	return rsb_httpd_answer(req, 200, "application/json", rsb_buf_view(&text));
}

static int
route(struct rsb_service *service, struct rsb_httpd_req *req)
{
	const char *method = rsb_httpd_method(req);
	const char *path = rsb_httpd_path(req);
	bool get = strcmp(method, "GET") == 0;
	bool post = strcmp(method, "POST") == 0;

	if (strcmp(path, "/health") == 0 && get)
		return answer_health(req);
	if (strcmp(path, "/init") == 0 && post)
		return init_begin(req);
	/* These have a rule of their own, with signatures. */
	if (strcmp(path, "/files") == 0 && (get || post))
		return rsb_files_begin(service, req);
	if (!rsb_settings_allow(service->settings, rsb_httpd_header(req, "X-Access-Token")))
		return rsb_refuse(req, 401,
			"unauthorized access, please provide a valid access token or method "
			"signing if supported");
	if (strcmp(path, "/envs") == 0 && get)
		return answer_envs(service, req);
	if (strncmp(path, RPC_PREFIX, strlen(RPC_PREFIX)) == 0)
		return rsb_rpc_begin(service, req, path + strlen(RPC_PREFIX));
	return rsb_refuse(req, 404, "no such call");
}

static int
on_begin(void *arg, struct rsb_httpd_req *req)
{
	return route(arg, req);
}

static const struct rsb_httpd_ops service_ops = {
	.begin = on_begin,
	.body = rsb_exchange_body,
	.end = rsb_exchange_end,
	.done = rsb_exchange_done,
};

static int
listen_loopback(int *ret_fd)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(RSB_SERVICE_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	rsb_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

int
rsb_service_new(
	const struct rsb_bootcfg *cfg, struct rsb_service **ret_service, struct rsb_diag *diag)
{
	rsb_autofree struct rsb_service *service = rsb_new(struct rsb_service);
	int fd = -1, r;

	if (!service)
		return -ENOMEM;
	r = rsb_settings_new(cfg, &service->settings);
	if (r < 0)
		return r;
	r = rsb_children_new(&service->children);
	if (r < 0)
		return r;
	r = listen_loopback(&fd);
	if (r == 0)
		r = rsb_httpd_new(
			fd, RSB_SERVICE_CONNECTIONS_MAX, &service_ops, service, &service->httpd);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "envd cannot listen in the sandbox: %s", rsb_diag_text(NULL, r));
	*ret_service = rsb_steal(&service);
	return 0;
}

int
rsb_service_reap(struct rsb_service *service)
{
	return rsb_children_reap(service->children);
}
