/* SPDX-License-Identifier: MIT */
#include "backend/answer.h"

#include <errno.h>
#include <string.h>

#include "util/json.h"

#define TEXT_MAX 200

/* The server's own words, without what could move a terminal's cursor. */
static void
server_text(const struct rsb_http_reply *reply, char out[static TEXT_MAX + 1])
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	const char *text = "";
	size_t i;

	if (rsb_json_parse(rsb_buf_view(&reply->body), &json, NULL) < 0 ||
		rsb_json_str(json, "message", &text) < 0)
		text = "";
	for (i = 0; i < TEXT_MAX && text[i]; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	out[i] = '\0';
}

static int
say(const struct rsb_http_reply *reply, const char *what, int r, struct rsb_diag *diag)
{
	char text[TEXT_MAX + 1];

	server_text(reply, text);
	return rsb_diag_set(
		diag, r, "%s: HTTP %d%s%s", what, reply->status, text[0] ? ": " : "", text);
}

/* A page of some box on the way is no answer of the control plane. */
static bool
is_api_answer(const struct rsb_http_reply *reply)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;

	if (rsb_buf_len(&reply->body) == 0)
		return true;
	return rsb_json_parse(rsb_buf_view(&reply->body), &json, NULL) == 0 &&
	       rsb_json_is_object(json);
}

static int
control_error(const struct rsb_http_reply *reply)
{
	switch (reply->status) {
	case 400:
		return -EINVAL;
	case 401:
	case 403:
		return -EACCES;
	case 404:
		return is_api_answer(reply) ? -ENOENT : -EBADMSG;
	case 409:
		return -EBUSY;
	case 429:
		return reply->has_retry_after ? -EAGAIN : -EDQUOT;
	case 501:
		return -EOPNOTSUPP;
	default:
		return reply->status >= 500 ? -EREMOTEIO : -EBADMSG;
	}
}

static int
sandbox_error(const struct rsb_http_reply *reply)
{
	switch (reply->status) {
	case 400:
		return -EINVAL;
	case 401:
	case 403:
		return -EACCES;
	case 404:
	case 409:
	case 410:
	case 429:
	case 502:
		return -ENOTCONN;
	case 507:
		return -ENOSPC;
	default:
		return reply->status >= 500 ? -EREMOTEIO : -EBADMSG;
	}
}

int
rsb_answer_control(const struct rsb_http_reply *reply, const char *what, struct rsb_diag *diag)
{
	if (reply->status >= 200 && reply->status <= 299)
		return 0;
	return say(reply, what, control_error(reply), diag);
}

int
rsb_answer_sandbox(const struct rsb_http_reply *reply, const char *what, struct rsb_diag *diag)
{
	if (reply->status >= 200 && reply->status <= 299)
		return 0;
	return say(reply, what, sandbox_error(reply), diag);
}
