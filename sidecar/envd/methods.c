/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/methods.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/str.h"

#include "sidecar/envd/startreq.h"

#define KEEPALIVE_SEC 90
#define KEEPALIVE_SEC_MAX 86400
#define TIMEOUT_MS_MAX UINT64_C(9999999999) /* Connect: at most ten digits */

void
rsb_method_fail(struct rsb_rpc *rpc, enum rsb_connectrpc_code code, const char *text)
{
	if (rpc->code != RSB_CONNECTRPC_OK)
		return;
	rpc->code = code;
	(void)rsb_diag_set(&rpc->why, 0, "%s", text);
}

static void
fail_errno(struct rsb_rpc *call, int r, const struct rsb_children_key *key)
{
	char text[RSB_DIAG_MAX];

	if (r == -ESRCH && key->tag)
		(void)snprintf(text, sizeof(text), "process with tag %s not found", key->tag);
	else if (r == -ESRCH)
		(void)snprintf(text, sizeof(text), "process with pid %d not found", key->pid);
	else
		(void)snprintf(text, sizeof(text), "%s", rsb_diag_text(NULL, r));
	rsb_method_fail(
		call, r == -ESRCH ? RSB_CONNECTRPC_NOT_FOUND : RSB_CONNECTRPC_INTERNAL, text);
}

/* ---- parts of messages ---- */

/* "process": {"pid"} or {"tag"}; strings are borrowed from json. */
static int
read_key(const struct rsb_json *json, const char *member, struct rsb_children_key *ret_key)
{
	struct rsb_json *process;
	const char *text;
	uint64_t number;
	int64_t pid;

	*ret_key = (struct rsb_children_key){ 0 };
	if (rsb_json_get(json, member, &process) < 0)
		return -EBADMSG;
	if (rsb_json_str(process, "tag", &ret_key->tag) == 0)
		return 0;
	if (rsb_json_i64(process, "pid", &pid) == 0 && pid > 0 && pid <= INT32_MAX) {
		ret_key->pid = (pid_t)pid;
		return 0;
	}
	if (rsb_json_str(process, "pid", &text) < 0 || rsb_str_u64(text, INT32_MAX, &number) < 0)
		return -EBADMSG;
	ret_key->pid = (pid_t)number;
	return 0;
}

static void
send_input(struct rsb_rpc *call, const struct rsb_json *json, const char *member,
	const struct rsb_children_key *key)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { .max = RSB_CONNECTRPC_MESSAGE_MAX };
	const char *text;
	int r;

	if (rsb_json_str(json, member, &text) < 0) {
		rsb_method_fail(
			call, RSB_CONNECTRPC_INTERNAL, "the input is not for standard input");
		return;
	}
	if (rsb_base64_decode(rsb_bytes_str(text), &data) < 0) {
		rsb_method_fail(call, RSB_CONNECTRPC_INVALID_ARGUMENT, "the input is not base64");
		return;
	}
	r = rsb_children_input(
		call->service->children, key, rsb_httpd_client_fd(call->req), rsb_buf_view(&data));
	if (r == -EPIPE)
		rsb_method_fail(call, RSB_CONNECTRPC_INTERNAL,
			"error writing to stdin: stdin not enabled or closed");
	else if (r < 0)
		fail_errno(call, r, key);
}

static uint64_t
keepalive_ns(const struct rsb_rpc *call)
{
	const char *text = rsb_httpd_header(call->req, "Keepalive-Ping-Interval");
	uint64_t sec;

	if (!text || rsb_str_u64(text, KEEPALIVE_SEC_MAX, &sec) < 0 || sec == 0)
		sec = KEEPALIVE_SEC;
	return sec * RSB_NSEC_PER_SEC;
}

static uint64_t
deadline_ns(const struct rsb_rpc *call)
{
	const char *text = rsb_httpd_header(call->req, "Connect-Timeout-Ms");
	uint64_t ms;

	if (!text || rsb_str_u64(text, TIMEOUT_MS_MAX, &ms) < 0 || ms == 0)
		return 0;
	return rsb_now_ns() + ms * RSB_NSEC_PER_MSEC;
}

/* ---- methods ---- */

static void
run_start(struct rsb_rpc *call, const struct rsb_json *json)
{
	RSB_CLEANUP(rsb_startreq_done) struct rsb_startreq start = { 0 };
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *env = NULL;
	struct rsb_children_start spec;
	char workdir[PATH_MAX];
	struct stat st;
	int r;

	env = rsb_settings_env(call->service->settings);
	rsb_settings_workdir(call->service->settings, workdir);
	r = rsb_startreq_read(json, &call->user, env, workdir, &start, &call->why);
	if (r < 0) {
		rsb_method_fail(
			call, RSB_CONNECTRPC_INVALID_ARGUMENT, rsb_diag_text(&call->why, r));
		return;
	}
	if (stat(start.cwd, &st) < 0 || !S_ISDIR(st.st_mode)) {
		(void)rsb_diag_set(&call->why, 0, "cwd '%.400s' does not exist", start.cwd);
		call->code = RSB_CONNECTRPC_INVALID_ARGUMENT;
		return;
	}
	spec = (struct rsb_children_start){
		.launch = {
			.argv = start.argv,
			.env = start.env,
			.cwd = start.cwd,
			.user = &call->user,
			.with_stdin = start.with_stdin,
		},
		.config = rsb_json_ref(start.config),
		.tag = start.tag,
		.deadline_ns = deadline_ns(call),
		.keepalive_ns = keepalive_ns(call),
	};
	r = rsb_children_start(call->service->children, &spec, &call->stream);
	if (r == -EAGAIN)
		rsb_method_fail(call, RSB_CONNECTRPC_RESOURCE_EXHAUSTED, "too many processes");
	else if (r < 0)
		rsb_method_fail(call, RSB_CONNECTRPC_INTERNAL, rsb_diag_text(NULL, r));
}

static void
run_connect(struct rsb_rpc *call, const struct rsb_json *json)
{
	struct rsb_children_key key;
	int r;

	if (read_key(json, "process", &key) < 0) {
		rsb_method_fail(call, RSB_CONNECTRPC_INVALID_ARGUMENT, "no process is named");
		return;
	}
	r = rsb_children_attach(call->service->children, &key, keepalive_ns(call), &call->stream);
	if (r < 0)
		fail_errno(call, r, &key);
}

static void
run_list(struct rsb_rpc *call, const struct rsb_json *json)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();
	int r;

	(void)json;
	call->reply = rsb_json_new_object();
	if (!array || !call->reply) {
		rsb_method_fail(call, RSB_CONNECTRPC_INTERNAL, "no memory");
		return;
	}
	r = rsb_children_list(call->service->children, array);
	if (r == 0 && rsb_json_len(array) > 0)
		r = rsb_json_set(call->reply, "processes", rsb_steal(&array));
	if (r < 0)
		rsb_method_fail(call, RSB_CONNECTRPC_INTERNAL, rsb_diag_text(NULL, r));
}

static void
run_send_input(struct rsb_rpc *call, const struct rsb_json *json)
{
	struct rsb_children_key key;

	if (read_key(json, "process", &key) < 0)
		rsb_method_fail(call, RSB_CONNECTRPC_INVALID_ARGUMENT, "no process is named");
	else
		send_input(call, json, "input.stdin", &key);
}

static void
run_close_stdin(struct rsb_rpc *call, const struct rsb_json *json)
{
	struct rsb_children_key key;
	int r;

	if (read_key(json, "process", &key) < 0) {
		rsb_method_fail(call, RSB_CONNECTRPC_INVALID_ARGUMENT, "no process is named");
		return;
	}
	r = rsb_children_close_stdin(call->service->children, &key);
	if (r < 0)
		fail_errno(call, r, &key);
}

/* The two that the protocol has; 0 else. */
static int
read_signal(const struct rsb_json *json)
{
	const char *name;
	int64_t number;

	if (rsb_json_str(json, "signal", &name) == 0) {
		if (strcmp(name, "SIGNAL_SIGKILL") == 0)
			return SIGKILL;
		return strcmp(name, "SIGNAL_SIGTERM") == 0 ? SIGTERM : 0;
	}
	if (rsb_json_i64(json, "signal", &number) == 0 && (number == SIGKILL || number == SIGTERM))
		return (int)number;
	return 0;
}

static void
run_send_signal(struct rsb_rpc *call, const struct rsb_json *json)
{
	struct rsb_children_key key;
	int sig = read_signal(json), r;

	if (read_key(json, "process", &key) < 0) {
		rsb_method_fail(call, RSB_CONNECTRPC_INVALID_ARGUMENT, "no process is named");
		return;
	}
	if (sig == 0) {
		rsb_method_fail(
			call, RSB_CONNECTRPC_UNIMPLEMENTED, "only SIGKILL and SIGTERM can be sent");
		return;
	}
	r = rsb_children_signal(call->service->children, &key, sig);
	if (r < 0)
		fail_errno(call, r, &key);
}

static void
run_stream_input(struct rsb_rpc *call, const struct rsb_json *json)
{
	struct rsb_children_key key;
	struct rsb_json *data;

	if (read_key(json, "start.process", &key) == 0) {
		char *tag = key.tag ? rsb_str_dup(rsb_bytes_str(key.tag)) : NULL;

		if (key.tag && !tag) {
			rsb_method_fail(call, RSB_CONNECTRPC_INTERNAL, "no memory");
			return;
		}
		free((char *)(uintptr_t)call->key.tag);
		call->key = (struct rsb_children_key){ .pid = key.pid, .tag = tag };
		call->has_key = true;
		return;
	}
	if (rsb_json_get(json, "data", &data) < 0)
		return; /* a keep-alive */
	if (!call->has_key)
		rsb_method_fail(
			call, RSB_CONNECTRPC_INVALID_ARGUMENT, "input before the start message");
	else
		send_input(call, data, "input.stdin", &call->key);
}

static const struct rsb_method methods[] = {
	{ "List", RSB_METHOD_UNARY, run_list },
	{ "Start", RSB_METHOD_SERVER_STREAM, run_start },
	{ "Connect", RSB_METHOD_SERVER_STREAM, run_connect },
	{ "SendInput", RSB_METHOD_UNARY, run_send_input },
	{ "StreamInput", RSB_METHOD_CLIENT_STREAM, run_stream_input },
	{ "SendSignal", RSB_METHOD_UNARY, run_send_signal },
	{ "CloseStdin", RSB_METHOD_UNARY, run_close_stdin },
};

const struct rsb_method *
rsb_method_find(const char *name)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(methods); i++) {
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	}
	return NULL;
}
