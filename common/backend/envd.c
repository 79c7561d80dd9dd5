/* SPDX-License-Identifier: MIT */
#include "backend/envd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "backend/answer.h"
#include "backend/envelope.h"
#include "util/gzip.h"
#include "util/hash.h"
#include "util/json.h"
#include "util/str.h"

#define CODE_MAX 32 /* bytes of an error code that is repeated */
#define HEADERS_MAX 12

/* Headers of one request; strings are owned. */
struct headers {
	char *lines[HEADERS_MAX + 1];
	size_t n;
};

static void
headers_done(struct headers *headers)
{
	size_t i;

	for (i = 0; i < headers->n; i++) {
		/* one of them carries the token */
		explicit_bzero(headers->lines[i], strlen(headers->lines[i]));
		free(headers->lines[i]);
	}
}

static int
add_header(struct headers *headers, char *line)
{
	if (!line)
		return -ENOMEM;
	if (headers->n == HEADERS_MAX) {
		free(line);
		return -E2BIG;
	}
	headers->lines[headers->n++] = line;
	return 0;
}

static int
add_user(struct headers *headers, const char *user)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf code = { 0 };
	int r;

	r = rsb_buf_printf(&text, "%s:", user);
	if (r < 0)
		return r;
	r = rsb_base64_encode(rsb_buf_view(&text), &code);
	if (r < 0)
		return r;
	return add_header(headers, rsb_str_printf("Authorization: Basic %.*s",
					   (int)rsb_buf_len(&code), rsb_buf_head(&code)));
}

static int
make_headers(const struct rsb_envd *envd, const char *type, struct headers *headers)
{
	size_t i;
	int r = add_header(headers, rsb_str_printf("Content-Type: %s", type));

	for (i = 0; envd->headers[i] && r == 0; i++)
		r = add_header(headers, strdup(envd->headers[i]));
	if (r == 0 && envd->token->size > 0)
		r = add_header(headers, rsb_str_printf("X-Access-Token: %.*s",
						(int)envd->token->size, envd->token->data));
	if (r == 0 && envd->user)
		r = add_user(headers, envd->user);
	if (r == 0 && strcmp(type, "application/connect+json") == 0)
		r = add_header(headers, strdup("Connect-Protocol-Version: 1"));
	if (r == 0)
		r = add_header(headers, strdup("Keepalive-Ping-Interval: 50"));
	return r;
}

/* ---- files ---- */

static int
upload_url(const struct rsb_envd *envd, const char *path, struct rsb_buf *url)
{
	int r = rsb_buf_printf(url, "%s/files?path=", envd->url);

	if (r == 0)
		r = rsb_http_escape(rsb_bytes_str(path), url);
	if (r == 0 && envd->user)
		r = rsb_buf_printf(url, "&username=%s", envd->user);
	return r == 0 ? rsb_buf_append(url, "", 1) : r;
}

static int
post_file(const struct rsb_envd *envd, const char *url, int fd, bool gzip,
	struct rsb_http_reply *reply, struct rsb_diag *diag)
{
	RSB_CLEANUP(headers_done) struct headers headers = { .n = 0 };
	struct rsb_http_request req = { .method = "POST", .timeout_ns = envd->timeout_ns };
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = make_headers(envd, "application/octet-stream", &headers);
	if (r == 0 && gzip)
		r = add_header(&headers, strdup("Content-Encoding: gzip"));
	if (r < 0)
		return r;
	req.url = url;
	req.headers = (const char *const *)headers.lines;
	req.body_fd = fd;
	req.body_size = (uint64_t)st.st_size;
	return rsb_http_do(envd->http, &req, reply, diag);
}

/* 400 and 415 are said of an encoding that is not known, and of other things that stay so. */
int
rsb_envd_upload(const struct rsb_envd *envd, const char *path, int fd, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf url = { 0 };
	rsb_autoclose int packed = memfd_create("rsb-upload", MFD_CLOEXEC);
	struct rsb_http_reply reply = { 0 };
	int r;

	if (packed < 0)
		return -errno;
	r = rsb_gzip_fd(fd, packed);
	if (r == 0)
		r = upload_url(envd, path, &url);
	if (r < 0)
		return r;
	r = post_file(envd, (const char *)rsb_buf_head(&url), packed, true, &reply, diag);
	if (r == 0 && (reply.status == 400 || reply.status == 415))
		r = post_file(envd, (const char *)rsb_buf_head(&url), fd, false, &reply, diag);
	if (r == 0)
		r = rsb_answer_sandbox(&reply, "cannot upload into the sandbox", diag);
	rsb_buf_done(&reply.body);
	return r;
}

/* ---- processes ---- */

static struct rsb_json *
string_array(const char *const *items)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();

	if (!array)
		return NULL;
	for (; *items; items++)
		if (rsb_json_set_str(array, NULL, *items) < 0)
			return NULL;
	return rsb_steal(&array);
}

/* {"process": process, ...} and the like, as one frame. */
static int
write_object(const char *key, struct rsb_json *value, struct rsb_json *base, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = base;
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r;

	if (!json || !value) {
		rsb_json_free(value);
		return -ENOMEM;
	}
	r = rsb_json_set(json, key, value);
	if (r == 0)
		r = rsb_json_write(json, false, &text);
	if (r == 0)
		r = rsb_envelope_write(rsb_buf_view(&text), out);
	return r;
}

static int
start_body(const struct rsb_backend_start *req, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *process = rsb_json_new_object();
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *base = rsb_json_new_object();
	struct rsb_json *args = string_array(req->argv + 1);
	int r;

	if (!process || !base || !args) {
		rsb_json_free(args);
		return -ENOMEM;
	}
	r = rsb_json_set(process, "args", args);
	if (r == 0)
		r = rsb_json_set_str(process, "cmd", req->argv[0]);
	if (r == 0 && req->cwd)
		r = rsb_json_set_str(process, "cwd", req->cwd);
	if (r == 0)
		r = rsb_json_set_bool(base, "stdin", true);
	if (r < 0)
		return r;
	return write_object("process", rsb_steal(&process), rsb_steal(&base), out);
}

/* A call whose answer is a stream of frames. */
struct call {
	struct rsb_envelope_reader reader;
	const struct rsb_backend_start *start; /* NULL: only the end counts */
	struct rsb_backend_end end;
	bool has_end;
	bool finished; /* the end frame came */
	bool let_go;   /* a callback wants no more */
	struct rsb_diag *diag;
};

static int
take_output(struct call *call, const struct rsb_json *json, const char *path, bool is_stderr)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf bytes = { 0 };
	const char *text;
	int r;

	r = rsb_json_str(json, path, &text);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = rsb_base64_decode(rsb_bytes_str(text), &bytes);
	if (r < 0)
		return r;
	return call->start->output(call->start->arg, is_stderr, rsb_buf_view(&bytes));
}

static int
take_event(struct call *call, const struct rsb_json *json)
{
	struct rsb_json *member;
	int64_t value = 0;
	int r;

	if (rsb_json_get(json, "event.start", &member) == 0) {
		r = rsb_json_i64(member, "pid", &value);
		if (r < 0 || value <= 0)
			return -EBADMSG;
		return call->start->started(call->start->arg, (uint64_t)value);
	}
	if (rsb_json_get(json, "event.end", &member) == 0) {
		/* members that are zero are left out */
		call->end.exited = false;
		(void)rsb_json_bool(member, "exited", &call->end.exited);
		(void)rsb_json_i64(member, "exitCode", &value);
		call->end.code = (int)value;
		call->has_end = true;
		return 0;
	}
	r = take_output(call, json, "event.data.stdout", false);
	if (r == 0)
		r = take_output(call, json, "event.data.stderr", true);
	return r;
}

/*
 * Of the Connect protocol; the sandbox's own words are not repeated, but its code if it looks like
 * one.
 */
static int
take_end(struct call *call, const struct rsb_json *json)
{
	const char *code = "";

	call->finished = true;
	if (rsb_json_str(json, "error.code", &code) < 0)
		return 0;
	if (strcmp(code, "unauthenticated") == 0 || strcmp(code, "permission_denied") == 0)
		return rsb_diag_set(call->diag, -EACCES, "the agent refused the user or the key");
	if (strcmp(code, "invalid_argument") == 0 || strcmp(code, "not_found") == 0)
		return rsb_diag_set(call->diag, -EINVAL, "the agent refused the call");
	if (strspn(code, "abcdefghijklmnopqrstuvwxyz_") != strlen(code) || strlen(code) > CODE_MAX)
		code = "no known code";
	return rsb_diag_set(call->diag, -EREMOTEIO, "the agent failed: %s", code);
}

static int
take_frame(struct call *call, uint8_t flags, struct rsb_bytes payload)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	int r;

	if (call->finished)
		return -EBADMSG;
	r = rsb_json_parse(payload, &json, NULL);
	if (r < 0)
		return r;
	if (flags & RSB_ENVELOPE_END)
		return take_end(call, json);
	return call->start ? take_event(call, json) : 0;
}

static int
on_data(void *arg, struct rsb_bytes data)
{
	struct call *call = arg;
	struct rsb_bytes payload;
	uint8_t flags;
	int r;

	r = rsb_envelope_reader_add(&call->reader, data);
	while (r == 0) {
		r = rsb_envelope_reader_next(&call->reader, &flags, &payload);
		if (r <= 0)
			return r;
		r = take_frame(call, flags, payload);
	}
	call->let_go = r > 0;
	return r;
}

static int
do_call(const struct rsb_envd *envd, const char *method, const struct rsb_buf *body,
	struct call *call, uint64_t timeout_ns)
{
	RSB_CLEANUP(headers_done) struct headers headers = { .n = 0 };
	rsb_autofree char *url = rsb_str_printf("%s/process.Process/%s", envd->url, method);
	struct rsb_http_reply reply = { 0 };
	struct rsb_http_request req = {
		.method = "POST",
		.url = url,
		.body = rsb_buf_view(body),
		.timeout_ns = timeout_ns,
		.once = true,
		.data = on_data,
		.arg = call,
	};
	int r;

	if (!url)
		return -ENOMEM;
	r = make_headers(envd, "application/connect+json", &headers);
	if (r < 0)
		return r;
	req.headers = (const char *const *)headers.lines;
	rsb_envelope_reader_init(&call->reader);
	r = rsb_http_do(envd->http, &req, &reply, call->diag);
	rsb_envelope_reader_done(&call->reader);
	if (r == 0)
		r = rsb_answer_sandbox(&reply, "cannot use the sandbox's agent", call->diag);
	rsb_buf_done(&reply.body);
	return r;
}

int
rsb_envd_start(const struct rsb_envd *envd, const struct rsb_backend_start *req,
	struct rsb_backend_end *ret_end, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf body = { 0 };
	struct call call = { .start = req, .diag = diag };
	int r;

	r = start_body(req, &body);
	if (r == 0)
		r = do_call(envd, "Start", &body, &call, req->timeout_ns);
	if (r < 0)
		return r;
	if (call.let_go)
		return 1;
	if (!call.finished)
		return rsb_diag_set(diag, -EREMOTEIO, "the agent's answer broke off");
	if (!call.has_end)
		return rsb_diag_set(diag, -EBADMSG, "the agent did not say how a program ended");
	*ret_end = call.end;
	return 0;
}

/* Base64 and numbers need no escaping. */
static int
input_body(uint64_t pid, struct rsb_bytes data, struct rsb_buf *out)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r;

	r = rsb_buf_printf(&text, "{\"start\":{\"process\":{\"pid\":%" PRIu64 "}}}", pid);
	if (r == 0)
		r = rsb_envelope_write(rsb_buf_view(&text), out);
	rsb_buf_clear(&text);
	if (r == 0)
		r = rsb_buf_printf(&text, "{\"data\":{\"input\":{\"stdin\":\"");
	if (r == 0)
		r = rsb_base64_encode(data, &text);
	if (r == 0)
		r = rsb_buf_printf(&text, "\"}}}");
	if (r == 0)
		r = rsb_envelope_write(rsb_buf_view(&text), out);
	if (text.data)
		explicit_bzero(text.data, text.cap);
	return r;
}

int
rsb_envd_input(
	const struct rsb_envd *envd, uint64_t pid, struct rsb_bytes data, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf body = { 0 };
	struct call call = { .diag = diag };
	int r;

	r = input_body(pid, data, &body);
	if (r == 0)
		r = do_call(envd, "StreamInput", &body, &call, envd->timeout_ns);
	if (body.data)
		explicit_bzero(body.data, body.cap);
	if (r < 0)
		return r;
	return call.finished ? 0 : rsb_diag_set(diag, -EREMOTEIO, "the agent's answer broke off");
}
