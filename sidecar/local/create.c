/* SPDX-License-Identifier: MIT */
#include "sidecar/local/create.h"

#include <errno.h>
#include <strings.h>

#include "util/cleanup.h"

#include "sidecar/envd/refuse.h"
#include "sidecar/local/view.h"

#define RSB_LOG_MODULE "create"
#include "util/log.h"

#define TIMEOUT_V1_SEC 15
#define PAIRS_MAX 4096U /* of metadata, or of envVars */

/* The ids of one sandbox after the other's, clear of what distributions give to users. */
#define UID_FIRST 524288U
#define UID_STEP 65536U
#define UID_SLOTS 16384U

/* An object whose members are all strings. 0 and NULL when it is absent. */
static int
read_strings(const struct rsb_json *json, const char *member, struct rsb_json **ret_object)
{
	struct rsb_json *object, *value;
	void *cursor = NULL;
	int r = rsb_json_get(json, member, &object);

	*ret_object = NULL;
	if (r == -ENOENT)
		return 0;
	if (r < 0 || !rsb_json_is_object(object) || rsb_json_len(object) > PAIRS_MAX)
		return -EBADMSG;
	while (rsb_json_member(object, &cursor, &value)) {
		if (!rsb_json_as_str(value))
			return -EBADMSG;
	}
	*ret_object = object;
	return 0;
}

struct create {
	struct rsb_json *env;
	struct rsb_json *metadata;
	int64_t timeout_sec;
	bool secure;
	bool auto_pause;
};

/* NULL, or why the request is refused. */
static const char *
read_create(const struct rsb_apicall *call, const struct rsb_json *json, struct create *create)
{
	if (rsb_apicall_seconds(json, "timeout",
		    call->v2 ? RSB_APICALL_TIMEOUT_V2_SEC : TIMEOUT_V1_SEC,
		    &create->timeout_sec) < 0 ||
		create->timeout_sec == 0)
		return "Timeout must be greater than 0";
	if (create->timeout_sec > RSB_APICALL_TIMEOUT_MAX_SEC)
		return "Timeout cannot be greater than 24 hours";
	create->secure = call->v2;
	if (!call->v2 && rsb_json_bool(json, "secure", &create->secure) == -EBADMSG)
		return "validation error: secure is no boolean";
	if (rsb_json_bool(json, "autoPause", &create->auto_pause) == -EBADMSG)
		return "validation error: autoPause is no boolean";
	if (read_strings(json, "metadata", &create->metadata) < 0)
		return "validation error: metadata maps strings to strings";
	if (read_strings(json, "envVars", &create->env) < 0)
		return "validation error: envVars maps strings to strings";
	return NULL;
}

static void
on_leaving(void *arg, struct rsb_sandbox *sandbox)
{
	struct rsb_host *host = arg;

	rsb_sandboxes_remove(host->sandboxes, sandbox);
	rsb_info("sandbox %s ends", rsb_sandbox_id(sandbox));
}

static void
on_gone(void *arg)
{
	struct rsb_host *host = arg;

	rsb_sandboxes_release(host->sandboxes);
}

static int
start(struct rsb_apicall *call, const struct create *create, uint32_t slot)
{
	struct rsb_host *host = call->host;
	RSB_CLEANUP(rsb_sandbox_unrefp) struct rsb_sandbox *sandbox = NULL;
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	struct rsb_diag diag = { 0 };
	struct rsb_sandbox_spec spec = {
		.envd = host->options->envd,
		.state_dir = host->options->state_dir,
		.disk_size = host->options->disk_size,
		.idmap = !host->options->no_idmap,
		.uid_base = UID_FIRST + slot % UID_SLOTS * UID_STEP,
		.timeout_ns = (uint64_t)create->timeout_sec * RSB_NSEC_PER_SEC,
		.cap_ns = host->options->cap_ns,
		.auto_pause = create->auto_pause,
		.secure = create->secure,
		.env = create->env,
		.metadata = create->metadata,
		.leaving = on_leaving,
		.gone = on_gone,
		.arg = host,
	};
	int r = rsb_sandbox_new(&spec, &sandbox, &diag);

	if (r < 0) {
		rsb_sandboxes_release(host->sandboxes);
		rsb_warn("cannot create a sandbox: %s", rsb_diag_text(&diag, r));
		return rsb_refuse(
			call->req, r == -E2BIG ? 400 : 500, "%s", rsb_diag_text(&diag, r));
	}
	r = rsb_sandboxes_add(host->sandboxes, sandbox);
	if (r < 0) {
		rsb_sandbox_kill(sandbox);
		return rsb_refuse(call->req, 503, "the server is shutting down");
	}
	rsb_info("sandbox %s runs", rsb_sandbox_id(sandbox));
	json = rsb_view_created(sandbox);
	return rsb_apicall_answer(call, 201, json);
}

int
rsb_create_run(struct rsb_apicall *call)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	struct rsb_sandboxes *sandboxes = call->host->sandboxes;
	struct create create = { 0 };
	const char *template, *why;
	uint32_t slot;
	int r;

	if (rsb_apicall_json(call, &json) < 0 || rsb_json_str(json, "templateID", &template) < 0)
		return rsb_refuse(call->req, 400, "validation error: templateID is required");
	if (strcasecmp(template, RSB_VIEW_TEMPLATE) != 0)
		return rsb_refuse(call->req, 404, "template '%.100s' not found", template);
	why = read_create(call, json, &create);
	if (why)
		return rsb_refuse(call->req, 400, "%s", why);
	r = rsb_sandboxes_reserve(sandboxes, &slot);
	if (r == -EAGAIN)
		return rsb_refuse(call->req, 429,
			"you have reached the maximum number of concurrent E2B sandboxes (%zu)",
			rsb_sandboxes_max(sandboxes));
	if (r < 0)
		return rsb_refuse(call->req, 503, "the server is shutting down");
	return start(call, &create, slot);
}
