/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "util/cleanup.h"
#include "util/hash.h"

#include "sidecar/envd/methods.h"

static void
run_message(struct rsb_rpc *call, struct rsb_bytes text)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;

	if (call->code != RSB_CONNECTRPC_OK)
		return;
	if (rsb_json_parse(text, &json, NULL) < 0 || !rsb_json_is_object(json))
		rsb_method_fail(
			call, RSB_CONNECTRPC_INVALID_ARGUMENT, "the message is not a JSON object");
	else
		call->method->run(call, json);
}

/* Messages of a client's stream take effect as they come. */
static void
run_arrived(struct rsb_rpc *call)
{
	struct rsb_bytes text;
	uint8_t flags;
	int r;

	while ((r = rsb_connectrpc_next(&call->in, &flags, &text)) > 0) {
		if (flags == RSB_CONNECTRPC_MESSAGE)
			run_message(call, text);
		rsb_buf_consume(&call->in, RSB_CONNECTRPC_HEAD + text.size);
	}
	if (r < 0) {
		rsb_method_fail(call, RSB_CONNECTRPC_INVALID_ARGUMENT,
			"the envelope is wrong or too large");
		rsb_buf_clear(&call->in);
	}
}

static int
rpc_body(void *arg, struct rsb_httpd_req *req, struct rsb_bytes data)
{
	struct rsb_rpc *call = rsb_httpd_data(req);

	(void)arg;
	if (call->code != RSB_CONNECTRPC_OK)
		return 0;
	if (rsb_buf_append(&call->in, data.data, data.size) < 0)
		rsb_method_fail(
			call, RSB_CONNECTRPC_RESOURCE_EXHAUSTED, "the message is too large");
	else if (call->method->kind == RSB_METHOD_CLIENT_STREAM)
		run_arrived(call);
	return 0;
}

static ssize_t
read_events(void *arg, uint8_t *out, size_t size)
{
	struct rsb_rpc *call = arg;

	return rsb_watcher_read(call->stream, rsb_httpd_client_fd(call->req), out, size);
}

static int
answer_unary(struct rsb_rpc *call)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r;

	if (call->code != RSB_CONNECTRPC_OK)
		r = rsb_connectrpc_error(&text, call->code, call->why.text);
	else if (call->reply)
		r = rsb_json_write(call->reply, false, &text);
	else
		r = rsb_buf_append(&text, "{}", 2);
	if (r < 0)
		return r;
	return rsb_httpd_answer(call->req, rsb_connectrpc_status(call->code), "application/json",
		rsb_buf_view(&text));
}

/* The end of a stream that has no events: an error, or the one message of a client's stream. */
static int
answer_envelopes(struct rsb_rpc *call)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r = 0;

	if (call->code == RSB_CONNECTRPC_OK)
		r = rsb_connectrpc_frame(&text, RSB_CONNECTRPC_MESSAGE, rsb_bytes_str("{}"));
	if (r == 0)
		r = rsb_connectrpc_end(&text, call->code, call->why.text);
	if (r < 0)
		return r;
	return rsb_httpd_answer(call->req, 200, "application/connect+json", rsb_buf_view(&text));
}

static int
answer_stream(struct rsb_rpc *call)
{
	int r = rsb_httpd_answer_stream(call->req, 200, RSB_HTTPD_UNKNOWN, read_events, call);

	return r < 0 ? r
		     : rsb_httpd_answer_header(
			       call->req, "Content-Type", "application/connect+json");
}

static void
rpc_end(void *arg, struct rsb_httpd_req *req)
{
	struct rsb_rpc *call = rsb_httpd_data(req);
	struct rsb_bytes text = rsb_buf_view(&call->in);
	uint8_t flags;

	(void)arg;
	if (call->method->kind == RSB_METHOD_UNARY)
		run_message(call, text.size ? text : rsb_bytes_str("{}"));
	else if (call->method->kind == RSB_METHOD_SERVER_STREAM &&
		 rsb_connectrpc_next(&call->in, &flags, &text) > 0)
		run_message(call, text);
	else if (call->method->kind == RSB_METHOD_SERVER_STREAM || rsb_buf_len(&call->in) > 0)
		rsb_method_fail(
			call, RSB_CONNECTRPC_INVALID_ARGUMENT, "the envelope is not complete");
	/* An answer that cannot be made closes the connection. */
	if (call->method->kind == RSB_METHOD_UNARY)
		(void)!answer_unary(call);
	else if (call->stream)
		(void)!answer_stream(call);
	else
		(void)!answer_envelopes(call);
}

static void
rpc_done(void *arg, struct rsb_httpd_req *req)
{
	struct rsb_rpc *call = rsb_httpd_data(req);

	(void)arg;
	rsb_watcher_free(call->stream);
	rsb_json_free(call->reply);
	rsb_buf_done(&call->in);
	free((char *)(uintptr_t)call->key.tag);
	free(call);
}

static const struct rsb_httpd_ops rpc_ops = {
	.body = rpc_body,
	.end = rpc_end,
	.done = rpc_done,
};

/* The user of "Authorization: Basic", whose password is not looked at. */
static int
find_user(struct rsb_rpc *call)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = 256 };
	const char *header = rsb_httpd_header(call->req, "Authorization");
	rsb_autofree char *name = NULL;

	if (header && strncasecmp(header, "Basic ", 6) == 0) {
		if (rsb_base64_decode(rsb_bytes_str(header + 6), &text) < 0)
			return -ENOENT;
		name = rsb_buf_steal_str(&text);
		if (!name)
			return -ENOMEM;
		name[strcspn(name, ":")] = '\0';
	}
	if (rsb_settings_user(call->service->settings, name, &call->user) < 0) {
		(void)rsb_diag_set(&call->why, 0, "invalid username: '%s'", name ? name : "");
		return -ENOENT;
	}
	return 0;
}

static int
refuse_user(struct rsb_rpc *call)
{
	rsb_method_fail(call, RSB_CONNECTRPC_UNAUTHENTICATED,
		call->why.text[0] ? call->why.text : "invalid authorization");
	return answer_unary(call);
}

int
rsb_rpc_begin(struct rsb_service *service, struct rsb_httpd_req *req, const char *method)
{
	struct rsb_rpc *call;
	const struct rsb_method *found = rsb_method_find(method);
	const char *type = rsb_httpd_header(req, "Content-Type");
	const char *want;

	if (!found)
		return rsb_refuse(req, 404, "no such call");
	if (strcmp(rsb_httpd_method(req), "POST") != 0)
		return rsb_httpd_answer(req, 405, NULL, (struct rsb_bytes){ 0 });
	want = found->kind == RSB_METHOD_UNARY ? "application/json" : "application/connect+json";
	if (!type || strncasecmp(type, want, strlen(want)) != 0)
		return rsb_httpd_answer(req, 415, NULL, (struct rsb_bytes){ 0 });
	call = rsb_new(struct rsb_rpc);
	if (!call)
		return -ENOMEM;
	call->exchange.ops = &rpc_ops;
	call->service = service;
	call->req = req;
	call->method = found;
	rsb_buf_init(&call->in, RSB_CONNECTRPC_MESSAGE_MAX + RSB_CONNECTRPC_HEAD);
	rsb_httpd_set_data(req, call);
	return find_user(call) < 0 ? refuse_user(call) : 0;
}
