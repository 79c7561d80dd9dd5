/* SPDX-License-Identifier: MIT */
#include "sidecar/local/view.h"

#include <errno.h>
#include <sys/sysinfo.h>

#include "util/cleanup.h"
#include "util/clock.h"

#include "sidecar/envd/service.h"

#define MIB ((uint64_t)1 << 20)

static int
add_common(struct rsb_json *json, const struct rsb_sandbox *sandbox)
{
	int r = rsb_json_set_str(json, "templateID", RSB_VIEW_TEMPLATE);

	if (r == 0)
		r = rsb_json_set_str(json, "sandboxID", rsb_sandbox_id(sandbox));
	if (r == 0)
		r = rsb_json_set_str(json, "alias", RSB_VIEW_TEMPLATE);
	if (r == 0)
		r = rsb_json_set_str(json, "clientID", "local");
	if (r == 0)
		r = rsb_json_set_str(json, "envdVersion", RSB_SERVICE_VERSION);
	return r;
}

static int
add_secrets(struct rsb_json *json, const struct rsb_sandbox *sandbox)
{
	const char *token = rsb_sandbox_token(sandbox);
	int r = token ? rsb_json_set_str(json, "envdAccessToken", token) : 0;

	return r < 0 ? r : rsb_json_set_null(json, "domain");
}

struct rsb_json *
rsb_view_created(struct rsb_sandbox *sandbox)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();

	if (!json || add_common(json, sandbox) < 0 || add_secrets(json, sandbox) < 0)
		return NULL;
	return rsb_steal(&json);
}

static int
add_times(struct rsb_json *json, struct rsb_sandbox *sandbox)
{
	char text[RSB_RFC3339_SIZE];
	int r;

	rsb_clock_rfc3339(rsb_sandbox_started_ns(sandbox), text);
	r = rsb_json_set_str(json, "startedAt", text);
	rsb_clock_rfc3339(rsb_sandbox_end_ns(sandbox), text);
	return r < 0 ? r : rsb_json_set_str(json, "endAt", text);
}

static int
add_size(struct rsb_json *json, const struct rsb_hostopt *options)
{
	struct sysinfo info = { 0 };
	int r;

	(void)sysinfo(&info); /* zeros say that it is not known */
	r = rsb_json_set_i64(json, "cpuCount", get_nprocs());
	if (r == 0)
		r = rsb_json_set_i64(
			json, "memoryMB", (int64_t)((uint64_t)info.totalram * info.mem_unit / MIB));
	if (r == 0)
		r = rsb_json_set_i64(json, "diskSizeMB", (int64_t)(options->disk_size / MIB));
	return r;
}

/* What is true here: no way out of the sandbox, and no request wakes it. */
static int
add_detail(struct rsb_json *json, const struct rsb_sandbox *sandbox)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *lifecycle = rsb_json_new_object();
	int r = add_secrets(json, sandbox);

	if (!lifecycle)
		return -ENOMEM;
	if (r == 0)
		r = rsb_json_set_bool(json, "allowInternetAccess", false);
	if (r == 0)
		r = rsb_json_set_bool(lifecycle, "autoResume", false);
	if (r == 0)
		r = rsb_json_set_str(lifecycle, "onTimeout",
			rsb_sandbox_pauses_itself(sandbox) ? "pause" : "kill");
	return r < 0 ? r : rsb_json_set(json, "lifecycle", rsb_steal(&lifecycle));
}

struct rsb_json *
rsb_view_listed(struct rsb_sandbox *sandbox, const struct rsb_hostopt *options, bool detail)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	struct rsb_json *metadata = rsb_sandbox_metadata(sandbox);
	int r;

	if (!json)
		return NULL;
	r = add_common(json, sandbox);
	if (r == 0)
		r = add_times(json, sandbox);
	if (r == 0)
		r = add_size(json, options);
	if (r == 0)
		r = rsb_json_set_str(
			json, "state", rsb_sandbox_is_paused(sandbox) ? "paused" : "running");
	if (r == 0 && metadata)
		r = rsb_json_set(json, "metadata", rsb_json_ref(metadata));
	if (r == 0 && detail)
		r = add_detail(json, sandbox);
	return r < 0 ? NULL : rsb_steal(&json);
}
