/* SPDX-License-Identifier: MIT */
#include "sidecar/local/apicall.h"

#include <errno.h>

#include "util/cleanup.h"

#include "sidecar/envd/refuse.h"

int
rsb_apicall_answer(struct rsb_apicall *call, unsigned int status, const struct rsb_json *json)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	int r = json ? rsb_json_write(json, false, &text) : -ENOMEM;

	if (r < 0)
		return r;
	return rsb_httpd_answer(call->req, status, "application/json", rsb_buf_view(&text));
}

int
rsb_apicall_done(struct rsb_apicall *call)
{
	return rsb_httpd_answer(call->req, 204, NULL, (struct rsb_bytes){ 0 });
}

int
rsb_apicall_unknown(struct rsb_apicall *call)
{
	return rsb_refuse(call->req, 404,
		"Sandbox \"%s\" doesn't exist or you don't have access to it", call->id);
}

int
rsb_apicall_json(const struct rsb_apicall *call, struct rsb_json **ret_json)
{
	struct rsb_json *json = NULL;
	int r = 0;

	if (rsb_buf_len(&call->body) == 0)
		json = rsb_json_new_object();
	else
		r = rsb_json_parse(rsb_buf_view(&call->body), &json, NULL);
	if (r < 0 || !json || !rsb_json_is_object(json)) {
		rsb_json_free(json);
		return -EBADMSG;
	}
	*ret_json = json;
	return 0;
}

int
rsb_apicall_seconds(
	const struct rsb_json *json, const char *member, int64_t default_sec, int64_t *ret_sec)
{
	int r = rsb_json_i64(json, member, ret_sec);

	if (r == -ENOENT && default_sec >= 0) {
		*ret_sec = default_sec;
		return 0;
	}
	return r < 0 || *ret_sec < 0 ? -EBADMSG : 0;
}
