/* SPDX-License-Identifier: MIT */
#include "sidecar/local/plane.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"

#include "sidecar/envd/refuse.h"
#include "sidecar/local/collection.h"
#include "sidecar/local/create.h"
#include "sidecar/local/single.h"
#include "sidecar/local/view.h"

static int
plane_body(void *arg, struct rsb_httpd_req *req, struct rsb_bytes data)
{
	struct rsb_apicall *call = rsb_httpd_data(req);

	(void)arg;
	if (rsb_buf_append(&call->body, data.data, data.size) < 0)
		return rsb_refuse(req, 413, "the body is too large");
	return 0;
}

static void
plane_end(void *arg, struct rsb_httpd_req *req)
{
	struct rsb_apicall *call = rsb_httpd_data(req);
	int r;

	(void)arg;
	if (call->id[0])
		r = rsb_single_run(call);
	else if (strcmp(call->method, "POST") == 0)
		r = rsb_create_run(call);
	else
		r = rsb_collection_run(call);
	if (r < 0)
		(void)!rsb_refuse(req, 500, "no memory"); /* else the connection is closed */
}

static void
plane_done(void *arg, struct rsb_httpd_req *req)
{
	struct rsb_apicall *call = rsb_httpd_data(req);

	(void)arg;
	rsb_buf_done(&call->body);
	free(call);
}

static const struct rsb_httpd_ops plane_ops = {
	.body = plane_body,
	.end = plane_end,
	.done = plane_done,
};

static bool
key_ok(const struct rsb_host *host, const char *key)
{
	const struct rsb_secret *want = &host->options->api_key;

	if (!key || !key[0])
		return false;
	return want->size == 0 || rsb_secret_equal(key, strlen(key), want->data, want->size) == 1;
}

/*
 * "[/v2]/sandboxes[/ID[/VERB]]". An id of the old form "ID-CLIENT" loses its end. -ENOENT for what
 * is no such path, -EINVAL for an id with more dashes.
 */
static int
parse_path(const char *path, struct rsb_apicall *call)
{
	const char *rest;
	size_t n;

	call->v2 = strncmp(path, "/v2/", 4) == 0;
	rest = call->v2 ? path + 3 : path;
	if (strncmp(rest, "/sandboxes", 10) != 0)
		return -ENOENT;
	rest += 10;
	if (rest[0] == '\0')
		return 0;
	n = strcspn(rest + 1, "/");
	if (rest[0] != '/' || n == 0 || n >= sizeof(call->id))
		return -ENOENT;
	(void)snprintf(call->id, sizeof(call->id), "%.*s", (int)n, rest + 1);
	rest += 1 + n;
	if (rest[0] == '/' && (strlen(rest + 1) == 0 || strlen(rest + 1) >= sizeof(call->verb)))
		return -ENOENT;
	if (rest[0] == '/')
		(void)strcpy(call->verb, rest + 1);
	if (strchr(call->id, '-') != strrchr(call->id, '-'))
		return -EINVAL;
	call->id[strcspn(call->id, "-")] = '\0';
	return call->id[0] ? 0 : -EINVAL;
}

static int
sandboxes_begin(struct rsb_host *host, struct rsb_httpd_req *req)
{
	struct rsb_apicall *call = rsb_new(struct rsb_apicall);
	int r;

	if (!call)
		return -ENOMEM;
	call->exchange.ops = &plane_ops;
	call->host = host;
	call->req = req;
	call->method = rsb_httpd_method(req);
	rsb_buf_init(&call->body, RSB_APICALL_BODY_MAX);
	rsb_httpd_set_data(req, call);
	r = parse_path(rsb_httpd_path(req), call);
	if (r == -EINVAL)
		return rsb_refuse(req, 400, "invalid sandbox id");
	if (r < 0 || (!call->id[0] && strcmp(call->method, "GET") != 0 &&
			     strcmp(call->method, "POST") != 0))
		return rsb_refuse(req, 404, "no such call");
	return 0;
}

static int
answer_text(struct rsb_httpd_req *req, const char *json)
{
	return rsb_httpd_answer(req, 200, "application/json", rsb_bytes_str(json));
}

int
rsb_plane_begin(struct rsb_host *host, struct rsb_httpd_req *req)
{
	const char *path = rsb_httpd_path(req);
	bool get = strcmp(rsb_httpd_method(req), "GET") == 0;

	if (strcmp(path, "/health") == 0 && get)
		return rsb_httpd_answer(req, 204, NULL, (struct rsb_bytes){ 0 });
	if (!key_ok(host, rsb_httpd_header(req, "X-API-Key")))
		return rsb_refuse(req, 401, "the API key is missing or wrong");
	if (strncmp(path, "/sandboxes", 10) == 0 || strncmp(path, "/v2/sandboxes", 13) == 0)
		return sandboxes_begin(host, req);
	if (strcmp(path, "/templates/aliases/" RSB_VIEW_TEMPLATE) == 0 && get)
		return answer_text(
			req, "{\"templateID\":\"" RSB_VIEW_TEMPLATE "\",\"public\":true}");
	if (strncmp(path, "/templates/aliases/", 19) == 0 && get)
		return rsb_refuse(req, 404, "template not found");
	if (strcmp(path, "/snapshots") == 0 && get)
		return answer_text(req, "[]");
	return rsb_refuse(req, 404, "no such call");
}
