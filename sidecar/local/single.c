/* SPDX-License-Identifier: MIT */
#include "sidecar/local/single.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"

#include "sidecar/envd/refuse.h"
#include "sidecar/local/view.h"

#define REFRESH_MAX_SEC 3600
#define REFRESH_MIN_SEC 15
#define RESUME_SEC 15

static int
detail(struct rsb_apicall *call, struct rsb_sandbox *sandbox)
{
	RSB_CLEANUP(rsb_json_freep)
	struct rsb_json *json = rsb_view_listed(sandbox, call->host->options, true);

	return rsb_apicall_answer(call, 200, json);
}

static int
set_timeout(struct rsb_apicall *call, struct rsb_sandbox *sandbox)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	int64_t sec;

	if (rsb_apicall_json(call, &json) < 0 || rsb_apicall_seconds(json, "timeout", -1, &sec) < 0)
		return rsb_refuse(call->req, 400, "validation error: timeout is required");
	/* More than the longest session is cut silently, as the hosted service does. */
	sec = rsb_min(sec, (int64_t)RSB_APICALL_TIMEOUT_MAX_SEC);
	if (rsb_sandbox_set_timeout(sandbox, (uint64_t)sec * RSB_NSEC_PER_SEC, false) < 0)
		return rsb_apicall_unknown(call); /* as the hosted service says of a paused one */
	return rsb_apicall_done(call);
}

static int
refresh(struct rsb_apicall *call, struct rsb_sandbox *sandbox)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	int64_t sec;

	if (rsb_apicall_json(call, &json) < 0 ||
		rsb_apicall_seconds(json, "duration", 0, &sec) < 0 || sec > REFRESH_MAX_SEC)
		return rsb_refuse(
			call->req, 400, "validation error: duration is 0 to %d", REFRESH_MAX_SEC);
	sec = rsb_max(sec, (int64_t)REFRESH_MIN_SEC);
	if (rsb_sandbox_set_timeout(sandbox, (uint64_t)sec * RSB_NSEC_PER_SEC, true) < 0)
		return rsb_apicall_unknown(call);
	return rsb_apicall_done(call);
}

/* default_sec as of rsb_apicall_seconds(). */
static int
resume(struct rsb_apicall *call, struct rsb_sandbox *sandbox, int64_t default_sec)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *view = NULL;
	int64_t sec;
	int r;

	if (rsb_apicall_json(call, &json) < 0 ||
		rsb_apicall_seconds(json, "timeout", default_sec, &sec) < 0)
		return rsb_refuse(call->req, 400, "validation error: timeout is required");
	if (sec > RSB_APICALL_TIMEOUT_MAX_SEC)
		return rsb_refuse(call->req, 400, "Timeout cannot be greater than 24 hours");
	r = rsb_sandbox_resume(sandbox, (uint64_t)sec * RSB_NSEC_PER_SEC);
	if (r < 0)
		return rsb_apicall_unknown(call); /* its end has come meanwhile */
	view = rsb_view_created(sandbox);
	return rsb_apicall_answer(call, r > 0 ? 201 : 200, view);
}

static int
connect_sandbox(struct rsb_apicall *call, struct rsb_sandbox *sandbox)
{
	return resume(call, sandbox, call->v2 ? RSB_APICALL_TIMEOUT_V2_SEC : -1);
}

static int
resume_sandbox(struct rsb_apicall *call, struct rsb_sandbox *sandbox)
{
	if (!rsb_sandbox_is_paused(sandbox))
		return rsb_refuse(
			call->req, 409, "Sandbox %s is already running", rsb_sandbox_id(sandbox));
	return resume(call, sandbox, RESUME_SEC);
}

/* With memory only: it would have to start from its disk alone. */
static int
pause_sandbox(struct rsb_apicall *call, struct rsb_sandbox *sandbox)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	bool memory = true;
	int r;

	if (rsb_apicall_json(call, &json) < 0 || rsb_json_bool(json, "memory", &memory) == -EBADMSG)
		return rsb_refuse(call->req, 400, "validation error: memory is no boolean");
	if (!memory)
		return rsb_refuse(call->req, 501, "this server pauses with memory only");
	r = rsb_sandbox_pause(sandbox);
	if (r == -EBUSY)
		return rsb_refuse(call->req, 409,
			"Error pausing sandbox - sandbox '%s' is already paused",
			rsb_sandbox_id(sandbox));
	if (r == -ENOTCONN)
		return rsb_apicall_unknown(call); /* its end has come meanwhile */
	if (r < 0)
		return rsb_refuse(call->req, 503,
			"the sandbox runs on: a process in it cannot be stopped: %s",
			rsb_diag_text(NULL, r));
	return rsb_apicall_done(call);
}

static int
not_here(struct rsb_apicall *call, struct rsb_sandbox *sandbox)
{
	(void)sandbox;
	return rsb_refuse(call->req, 501, "this server cannot do that: %s", call->verb);
}

static int
kill_sandbox(struct rsb_apicall *call)
{
	RSB_CLEANUP(rsb_sandbox_unrefp)
	struct rsb_sandbox *sandbox = rsb_sandboxes_take(call->host->sandboxes, call->id);

	if (!sandbox)
		return rsb_apicall_unknown(call);
	rsb_sandbox_kill(sandbox);
	return rsb_apicall_done(call);
}

struct verb {
	const char *method;
	const char *verb;
	int (*run)(struct rsb_apicall *call, struct rsb_sandbox *sandbox);
};

static const struct verb verbs[] = {
	{ "GET", "", detail },
	{ "POST", "timeout", set_timeout },
	{ "POST", "refreshes", refresh },
	{ "POST", "connect", connect_sandbox },
	{ "POST", "resume", resume_sandbox },
	{ "POST", "pause", pause_sandbox },
	{ "POST", "fork", not_here },
	{ "POST", "snapshots", not_here },
	{ "PUT", "network", not_here },
	{ "GET", "metrics", not_here },
	{ "GET", "logs", not_here },
};

int
rsb_single_run(struct rsb_apicall *call)
{
	RSB_CLEANUP(rsb_sandbox_unrefp) struct rsb_sandbox *sandbox = NULL;

	if (strcmp(call->method, "DELETE") == 0 && call->verb[0] == '\0')
		return kill_sandbox(call);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(verbs); i++) {
		if (strcmp(verbs[i].method, call->method) != 0 ||
			strcmp(verbs[i].verb, call->verb) != 0)
			continue;
		sandbox = rsb_sandboxes_find(call->host->sandboxes, call->id);
		return sandbox ? verbs[i].run(call, sandbox) : rsb_apicall_unknown(call);
	}
	return rsb_refuse(call->req, 404, "no such call");
}
