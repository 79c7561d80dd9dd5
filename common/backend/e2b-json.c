/* SPDX-License-Identifier: MIT */
#include "backend/e2b-json.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"

bool
rsb_e2b_id_ok(const char *id)
{
	size_t n = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && n <= RSB_SANDBOX_ID_MAX && id[n] == '\0';
}

int
rsb_e2b_write_create(const struct rsb_backend_create *req, struct rsb_json **ret_body)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *body = rsb_json_new_object();
	struct rsb_json *metadata = rsb_json_new_object();
	int r;

	if (!body || !metadata) {
		rsb_json_free(metadata);
		return -ENOMEM;
	}
	r = rsb_json_set_str(metadata, RSB_METADATA_INTENT, req->intent);
	if (r == 0)
		r = rsb_json_set_str(metadata, RSB_METADATA_NAME, req->name);
	if (r < 0) {
		rsb_json_free(metadata);
		return r;
	}
	r = rsb_json_set(body, "metadata", metadata);
	if (r == 0)
		r = rsb_json_set_str(body, "templateID", req->template);
	if (r == 0)
		r = rsb_json_set_i64(body, "timeout", (int64_t)(req->ttl_ns / RSB_NSEC_PER_SEC));
	if (r == 0)
		r = rsb_json_set_bool(body, "secure", true);
	if (r == 0)
		r = rsb_json_set_bool(body, "autoPause", req->pause_on_expire);
	if (r == 0)
		r = rsb_json_set_bool(body, "allow_internet_access", req->internet);
	if (r < 0)
		return r;
	*ret_body = rsb_steal(&body);
	return 0;
}

/* Absent and null are the empty string; too long is refused. */
static int
copy_str(const struct rsb_json *json, const char *path, char *out, size_t size)
{
	const char *text;
	int r;

	out[0] = '\0';
	r = rsb_json_str(json, path, &text);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (strlen(text) >= size)
		return -EBADMSG;
	strcpy(out, text);
	return 0;
}

/* It goes into a header: nothing but visible ASCII. */
static int
copy_token(const struct rsb_json *json, const char *path, struct rsb_secret *out)
{
	const char *text, *p;
	int r;

	r = rsb_json_str(json, path, &text);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	for (p = text; *p; p++)
		if (*p <= ' ' || *p > '~')
			return -EBADMSG;
	return rsb_secret_set(out, text, p - text > 0 ? (size_t)(p - text) : 0);
}

static int
copy_time(const struct rsb_json *json, const char *path, uint64_t *out)
{
	const char *text;

	/* a time that is not said, or not understood, is unknown */
	if (rsb_json_str(json, path, &text) < 0 || rsb_clock_parse_rfc3339(text, out) < 0)
		*out = 0;
	return 0;
}

static bool
host_ok(const char *host)
{
	return host[strspn(host,
		       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.:")] ==
	       '\0';
}

static enum rsb_sandbox_expiry
read_expiry(const struct rsb_json *json)
{
	const char *text;

	if (rsb_json_str(json, "lifecycle.onTimeout", &text) < 0)
		return RSB_SANDBOX_EXPIRY_UNKNOWN;
	return strcmp(text, "pause") == 0  ? RSB_SANDBOX_IS_PAUSED
	       : strcmp(text, "kill") == 0 ? RSB_SANDBOX_IS_KILLED
					   : RSB_SANDBOX_EXPIRY_UNKNOWN;
}

static int
read_fields(const struct rsb_json *json, struct rsb_sandbox *sandbox)
{
	char state[16];
	int r;

	r = copy_str(json, "sandboxID", sandbox->id, sizeof(sandbox->id));
	if (r == 0)
		r = copy_str(json, "templateID", sandbox->template, sizeof(sandbox->template));
	if (r == 0)
		r = copy_str(json, "domain", sandbox->domain, sizeof(sandbox->domain));
	if (r == 0)
		r = copy_str(
			json, "envdVersion", sandbox->envd_version, sizeof(sandbox->envd_version));
	if (r == 0)
		r = copy_str(json, "metadata." RSB_METADATA_INTENT, sandbox->intent,
			sizeof(sandbox->intent));
	if (r == 0)
		r = copy_str(
			json, "metadata." RSB_METADATA_NAME, sandbox->name, sizeof(sandbox->name));
	if (r == 0)
		r = copy_str(json, "state", state, sizeof(state));
	if (r == 0)
		r = copy_token(json, "envdAccessToken", &sandbox->envd_token);
	if (r == 0)
		r = copy_token(json, "trafficAccessToken", &sandbox->traffic_token);
	if (r == 0)
		r = copy_time(json, "startedAt", &sandbox->started_ns);
	if (r == 0)
		r = copy_time(json, "endAt", &sandbox->end_ns);
	if (r < 0)
		return r;
	sandbox->expiry = read_expiry(json);
	sandbox->state = strcmp(state, "paused") == 0 ? RSB_SANDBOX_PAUSED : RSB_SANDBOX_RUNNING;
	return rsb_e2b_id_ok(sandbox->id) && host_ok(sandbox->domain) ? 0 : -EBADMSG;
}

int
rsb_e2b_read_sandbox(const struct rsb_json *json, struct rsb_sandbox *ret_sandbox)
{
	struct rsb_sandbox sandbox = { 0 };
	int r;

	if (!rsb_json_is_object(json))
		return -EBADMSG;
	r = read_fields(json, &sandbox);
	if (r == 0)
		*ret_sandbox = sandbox;
	rsb_secret_done(&sandbox.envd_token);
	rsb_secret_done(&sandbox.traffic_token);
	return r;
}

int
rsb_e2b_expand(
	const char *url, unsigned int port, const char *id, const char *domain, char **ret_url)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	size_t n;
	int r = 0;

	for (; *url && r == 0; url += n) {
		n = strcspn(url, "{");
		if (n > 0) {
			r = rsb_buf_append(&out, url, n);
		} else if (strncmp(url, "{port}", 6) == 0) {
			n = 6;
			r = rsb_buf_printf(&out, "%u", port);
		} else if (strncmp(url, "{id}", 4) == 0) {
			n = 4;
			r = rsb_buf_printf(&out, "%s", id);
		} else if (strncmp(url, "{domain}", 8) == 0) {
			n = 8;
			r = rsb_buf_printf(&out, "%s", domain);
		} else {
			return -EINVAL;
		}
	}
	if (r < 0)
		return r;
	while (rsb_buf_len(&out) > 0 && out.data[out.size - 1] == '/')
		out.size--;
	*ret_url = rsb_buf_steal_str(&out);
	return *ret_url ? 0 : -ENOMEM;
}
