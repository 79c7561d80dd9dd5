/* SPDX-License-Identifier: MIT */
#include "backend/e2b.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "backend/api.h"
#include "backend/e2b-json.h"
#include "backend/envd.h"
#include "backend/local.h"
#include "util/str.h"

#define PATH_SIZE 512
#define LIST_PAGES_MAX 1000
#define START_USER "root"

struct rsb_e2b {
	struct rsb_backend backend;
	struct rsb_backend_ops ops;
	struct rsb_api api;
	char *domain;
	char *envd_url;
	unsigned int envd_port;
	char *local_dir; /* NULL: the server stays where it is */
	char *const *local_env;
	uint64_t timeout_ns;
	struct rsb_http *stream; /* a started program may be talked to while its output comes */
};

static struct rsb_e2b *
e2b_of(struct rsb_backend *backend)
{
	return rsb_container_of(backend, struct rsb_e2b, backend);
}

static void
e2b_free(struct rsb_backend *backend)
{
	struct rsb_e2b *e2b = e2b_of(backend);

	rsb_http_free(e2b->stream);
	rsb_api_done(&e2b->api);
	rsb_cleanup_close(&e2b->backend.abort_fd);
	free(e2b->domain);
	free(e2b->envd_url);
	free(e2b->local_dir);
	free(e2b);
}

/* ---- control plane ---- */

/*
 * Another rsb-local may have come, at a port of its own, or is to. -ENOENT: none has, so its
 * sandboxes are gone.
 */
static int
look_again(struct rsb_e2b *e2b, bool start, struct rsb_diag *diag)
{
	struct rsb_local local;
	char *url;
	int r;

	r = (start ? rsb_local_open : rsb_local_find)(e2b->local_dir, e2b->local_env, &local, diag);
	if (r < 0)
		return r;
	url = strdup(local.url);
	r = url ? rsb_api_move(&e2b->api, local.url, &local.api_key) : -ENOMEM;
	rsb_secret_done(&local.api_key);
	if (r < 0) {
		free(url);
		return r;
	}
	free(e2b->envd_url);
	e2b->envd_url = url;
	return 0;
}

static int
do_call(struct rsb_e2b *e2b, const struct rsb_api_call *call, struct rsb_json **ret_json,
	char *next, struct rsb_diag *diag)
{
	int r = rsb_api_do(&e2b->api, call, ret_json, next, diag);

	if (r == -ENOTCONN && e2b->local_dir) {
		r = look_again(e2b, call->makes, diag);
		if (r == 0)
			r = rsb_api_do(&e2b->api, call, ret_json, next, diag);
	}
	e2b->backend.retry_after_ns = e2b->api.retry_after_ns;
	return r;
}

/* A call that answers one sandbox. */
static int
answer_sandbox(struct rsb_e2b *e2b, const struct rsb_api_call *call,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	int r;

	r = do_call(e2b, call, &json, NULL, diag);
	if (r < 0)
		return r;
	r = rsb_e2b_read_sandbox(json, ret_sandbox);
	if (r < 0)
		return rsb_diag_set(diag, r, "%s: the answer makes no sense", call->what);
	if (ret_sandbox->end_ns > e2b->api.date_ns)
		ret_sandbox->left_ns = ret_sandbox->end_ns - e2b->api.date_ns;
	return 0;
}

/* "/sandboxes/ID" and what follows. Ids are checked where they come in. */
static int
sandbox_path(const char *id, const char *rest, char out[static PATH_SIZE])
{
	int n;

	if (!rsb_e2b_id_ok(id))
		return -EINVAL;
	n = snprintf(out, PATH_SIZE, "/sandboxes/%s%s", id, rest);
	return n < PATH_SIZE ? 0 : -EINVAL;
}

static int
e2b_create(struct rsb_backend *backend, const struct rsb_backend_create *req,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *body = NULL;
	struct rsb_api_call call = {
		.method = "POST",
		.path = "/sandboxes",
		.what = "cannot create a sandbox",
		.once = true,
		.makes = true,
	};
	int r;

	r = rsb_e2b_write_create(req, &body);
	if (r < 0)
		return r;
	call.body = body;
	r = answer_sandbox(e2b_of(backend), &call, ret_sandbox, diag);
	/* here it is the template that is not known */
	if (r == -ENOENT)
		r = -EINVAL;
	return r;
}

static int
e2b_get(struct rsb_backend *backend, const char *id, struct rsb_sandbox *ret_sandbox,
	struct rsb_diag *diag)
{
	char path[PATH_SIZE];
	const struct rsb_api_call call = {
		.method = "GET", .path = path, .what = "cannot ask for the sandbox", .asks = true
	};
	int r;

	r = sandbox_path(id, "", path);
	if (r < 0)
		return r;
	return answer_sandbox(e2b_of(backend), &call, ret_sandbox, diag);
}

/* A body of one number. */
static int
number_body(const char *key, uint64_t value, struct rsb_json **ret_body)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *body = rsb_json_new_object();
	int r;

	if (!body)
		return -ENOMEM;
	r = rsb_json_set_i64(body, key, (int64_t)value);
	if (r < 0)
		return r;
	*ret_body = rsb_steal(&body);
	return 0;
}

static int
e2b_connect(struct rsb_backend *backend, const char *id, uint64_t ttl_ns,
	struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *body = NULL;
	char path[PATH_SIZE];
	struct rsb_api_call call = {
		.method = "POST", .path = path, .what = "cannot resume the sandbox"
	};
	int r;

	r = sandbox_path(id, "/connect", path);
	if (r == 0)
		r = number_body("timeout", ttl_ns / RSB_NSEC_PER_SEC, &body);
	if (r < 0)
		return r;
	call.body = body;
	return answer_sandbox(e2b_of(backend), &call, ret_sandbox, diag);
}

static int
e2b_extend(struct rsb_backend *backend, const char *id, uint64_t ttl_ns, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *body = NULL;
	char path[PATH_SIZE];
	struct rsb_api_call call = {
		.method = "POST",
		.path = path,
		.what = "cannot prolong the sandbox's life",
		.asks = true,
	};
	int r;

	r = sandbox_path(id, "/refreshes", path);
	if (r == 0)
		r = number_body("duration",
			rsb_min(ttl_ns / RSB_NSEC_PER_SEC, (uint64_t)RSB_E2B_REFRESH_MAX_S), &body);
	if (r < 0)
		return r;
	call.body = body;
	return do_call(e2b_of(backend), &call, NULL, NULL, diag);
}

static int
e2b_pause(struct rsb_backend *backend, const char *id, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *body = rsb_json_new_object();
	char path[PATH_SIZE];
	const struct rsb_api_call call = {
		.method = "POST", .path = path, .body = body, .what = "cannot pause the sandbox"
	};
	int r;

	if (!body)
		return -ENOMEM;
	r = sandbox_path(id, "/pause", path);
	if (r == 0)
		r = rsb_json_set_bool(body, "memory", true);
	if (r < 0)
		return r;
	return do_call(e2b_of(backend), &call, NULL, NULL, diag);
}

static int
e2b_kill(struct rsb_backend *backend, const char *id, struct rsb_diag *diag)
{
	char path[PATH_SIZE];
	const struct rsb_api_call call = {
		.method = "DELETE", .path = path, .what = "cannot destroy the sandbox"
	};
	int r;

	r = sandbox_path(id, "", path);
	if (r < 0)
		return r;
	return do_call(e2b_of(backend), &call, NULL, NULL, diag);
}

/* ---- list ---- */

struct lister {
	const char *intent;
	int (*fn)(void *arg, const struct rsb_sandbox *sandbox);
	void *arg;
};

static int
list_page(const struct lister *lister, const struct rsb_json *page)
{
	struct rsb_sandbox sandbox;
	size_t i;
	int r;

	if (!rsb_json_is_array(page))
		return -EBADMSG;
	for (i = 0; i < rsb_json_len(page); i++) {
		r = rsb_e2b_read_sandbox(rsb_json_at(page, i), &sandbox);
		/* one that we cannot read is not ours */
		if (r < 0)
			continue;
		/* also for servers that do not know the filter */
		if (sandbox.intent[0] &&
			(!lister->intent || strcmp(lister->intent, sandbox.intent) == 0))
			r = lister->fn(lister->arg, &sandbox);
		rsb_sandbox_done(&sandbox);
		if (r != 0)
			return r;
	}
	return 0;
}

static int
list_path(const char *intent, const char *token, struct rsb_buf *path)
{
	int r;

	rsb_buf_clear(path);
	r = rsb_buf_printf(path, "/v2/sandboxes?limit=100&state=running%%2Cpaused");
	/* an intent is hexadecimal: however often the server decodes it */
	if (r == 0 && intent)
		r = rsb_buf_printf(path, "&metadata=%s%%3D%s", RSB_METADATA_INTENT, intent);
	if (r == 0 && token[0]) {
		r = rsb_buf_printf(path, "&nextToken=");
		if (r == 0)
			r = rsb_http_escape(rsb_bytes_str(token), path);
	}
	return r == 0 ? rsb_buf_append(path, "", 1) : r;
}

static int
e2b_list(struct rsb_backend *backend, const char *intent,
	int (*fn)(void *arg, const struct rsb_sandbox *sandbox), void *arg, struct rsb_diag *diag)
{
	const struct lister lister = { .intent = intent, .fn = fn, .arg = arg };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf path = { 0 };
	struct rsb_api_call call = { .method = "GET", .what = "cannot list the sandboxes" };
	char token[sizeof(((struct rsb_http_reply *)0)->next_token)] = "";
	unsigned int page;
	int r = 0;

	for (page = 0; page < LIST_PAGES_MAX && r == 0; page++) {
		RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;

		r = list_path(intent, token, &path);
		if (r < 0)
			break;
		call.path = (const char *)rsb_buf_head(&path);
		r = do_call(e2b_of(backend), &call, &json, token, diag);
		if (r == 0)
			r = list_page(&lister, json);
		if (!token[0])
			break;
	}
	/* a missing route is no statement about a sandbox */
	return r == -ENOENT ? -EBADMSG : r;
}

/* ---- the sandbox's side ---- */

static int
e2b_address(struct rsb_backend *backend, const struct rsb_sandbox *sandbox, unsigned int port,
	struct rsb_backend_address *ret_address)
{
	struct rsb_e2b *e2b = e2b_of(backend);
	RSB_CLEANUP(rsb_backend_address_done) struct rsb_backend_address address = { 0 };
	const char *domain = sandbox->domain[0] ? sandbox->domain : e2b->domain;
	int r;

	r = rsb_e2b_expand(e2b->envd_url, port, sandbox->id, domain, &address.url);
	if (r < 0)
		return r;
	address.headers[0] = rsb_str_printf("E2b-Sandbox-Id: %s", sandbox->id);
	if (!address.headers[0])
		return -ENOMEM;
	address.headers[1] = rsb_str_printf("E2b-Sandbox-Port: %u", port);
	if (!address.headers[1])
		return -ENOMEM;
	if (sandbox->traffic_token.size > 0) {
		address.headers[2] = rsb_str_printf("e2b-traffic-access-token: %.*s",
			(int)sandbox->traffic_token.size, sandbox->traffic_token.data);
		if (!address.headers[2])
			return -ENOMEM;
	}
	*ret_address = address;
	address = (struct rsb_backend_address){ 0 };
	return 0;
}

static int
open_agent(struct rsb_e2b *e2b, const struct rsb_sandbox *sandbox, const char *user,
	struct rsb_backend_address *ret_address, struct rsb_envd *ret_envd)
{
	int r;

	r = e2b_address(&e2b->backend, sandbox, e2b->envd_port, ret_address);
	if (r < 0)
		return r;
	*ret_envd = (struct rsb_envd){
		.http = e2b->api.http,
		.url = ret_address->url,
		.headers = (const char *const *)ret_address->headers,
		.token = &sandbox->envd_token,
		.user = user,
		.timeout_ns = e2b->timeout_ns,
	};
	return 0;
}

static int
e2b_upload(struct rsb_backend *backend, const struct rsb_sandbox *sandbox, const char *path, int fd,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_backend_address_done) struct rsb_backend_address address = { 0 };
	struct rsb_envd envd;
	int r;

	r = open_agent(e2b_of(backend), sandbox, START_USER, &address, &envd);
	if (r < 0)
		return r;
	return rsb_envd_upload(&envd, path, fd, diag);
}

static int
e2b_start(struct rsb_backend *backend, const struct rsb_sandbox *sandbox,
	const struct rsb_backend_start *req, struct rsb_backend_end *ret_end, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_backend_address_done) struct rsb_backend_address address = { 0 };
	struct rsb_envd envd;
	int r;

	r = open_agent(e2b_of(backend), sandbox, req->user, &address, &envd);
	if (r < 0)
		return r;
	envd.http = e2b_of(backend)->stream;
	return rsb_envd_start(&envd, req, ret_end, diag);
}

static int
e2b_input(struct rsb_backend *backend, const struct rsb_sandbox *sandbox, uint64_t pid,
	struct rsb_bytes data, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_backend_address_done) struct rsb_backend_address address = { 0 };
	struct rsb_envd envd;
	int r;

	r = open_agent(e2b_of(backend), sandbox, START_USER, &address, &envd);
	if (r < 0)
		return r;
	return rsb_envd_input(&envd, pid, data, diag);
}

/* ---- life ---- */

static const struct rsb_backend_ops e2b_ops = {
	.free = e2b_free,
	.create = e2b_create,
	.get = e2b_get,
	.list = e2b_list,
	.connect = e2b_connect,
	.extend = e2b_extend,
	.pause = e2b_pause,
	.kill = e2b_kill,
	.upload = e2b_upload,
	.start = e2b_start,
	.input = e2b_input,
	.address = e2b_address,
};

int
rsb_e2b_new(const struct rsb_e2b_config *config, struct rsb_backend **ret_backend,
	struct rsb_diag *diag)
{
	struct rsb_e2b *e2b = rsb_new(struct rsb_e2b);
	RSB_CLEANUP(rsb_backend_freep) struct rsb_backend *backend = NULL;
	struct rsb_http_config http = { .ca_file = config->ca_file };
	int r;

	if (!e2b)
		return -ENOMEM;
	e2b->ops = e2b_ops;
	e2b->ops.name = config->name;
	backend = &e2b->backend;
	backend->ops = &e2b->ops;
	backend->abort_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (backend->abort_fd < 0)
		return -errno;
	http.abort_fd = backend->abort_fd;
	e2b->envd_port = config->envd_port;
	e2b->local_env = config->local_env;
	e2b->timeout_ns = config->timeout_ns;
	e2b->domain = strdup(config->domain);
	e2b->envd_url = strdup(config->envd_url);
	e2b->local_dir = config->local_dir ? strdup(config->local_dir) : NULL;
	if (!e2b->domain || !e2b->envd_url || (config->local_dir && !e2b->local_dir))
		return -ENOMEM;
	r = rsb_api_init(&e2b->api, &http, config->api_url, &config->api_key);
	if (r < 0)
		return r == -EINVAL ? rsb_diag_set(diag, r, "the API key is no key") : r;
	e2b->api.timeout_ns = config->timeout_ns;
	e2b->api.ask_ns = config->ask_ns;
	r = rsb_http_new(&http, &e2b->stream);
	if (r < 0)
		return r;
	*ret_backend = rsb_steal(&backend);
	return 0;
}
