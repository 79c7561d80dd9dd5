/* SPDX-License-Identifier: MIT */
#include "backend/api.h"

#include <errno.h>
#include <string.h>

#include "backend/answer.h"
#include "util/clock.h"
#include "util/str.h"

static void
free_address(struct rsb_api *api)
{
	if (api->key_header)
		explicit_bzero(api->key_header, strlen(api->key_header));
	free(api->key_header);
	free(api->url);
}

int
rsb_api_move(struct rsb_api *api, const char *url, const struct rsb_secret *key)
{
	struct rsb_api moved = *api;
	size_t i;

	/* anything else would end the header, or be no key */
	for (i = 0; i < key->size; i++)
		if (key->data[i] <= ' ' || key->data[i] > '~')
			return -EINVAL;
	if (key->size == 0)
		return -EINVAL;
	moved.url = strdup(url);
	moved.key_header = rsb_str_printf("X-API-Key: %.*s", (int)key->size, key->data);
	if (!moved.url || !moved.key_header) {
		free_address(&moved);
		return -ENOMEM;
	}
	free_address(api);
	*api = moved;
	return 0;
}

int
rsb_api_init(struct rsb_api *api, const struct rsb_http_config *http, const char *url,
	const struct rsb_secret *key)
{
	int r = rsb_api_move(api, url, key);

	return r < 0 ? r : rsb_http_new(http, &api->http);
}

void
rsb_api_done(struct rsb_api *api)
{
	rsb_http_free(api->http);
	free_address(api);
	*api = (struct rsb_api){ 0 };
}

static int
send_call(struct rsb_api *api, const struct rsb_api_call *call, struct rsb_http_reply *reply,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf body = { 0 };
	rsb_autofree char *url = rsb_str_printf("%s%s", api->url, call->path);
	const char *const headers[] = { api->key_header, "Content-Type: application/json",
		"Accept: application/json", NULL };
	struct rsb_http_request req = {
		.method = call->method,
		.url = url,
		.headers = headers,
		.timeout_ns = call->asks ? api->ask_ns : api->timeout_ns,
		.once = call->once,
	};
	struct rsb_diag why = { 0 };
	int r;

	if (!url)
		return -ENOMEM;
	if (call->body) {
		r = rsb_json_write(call->body, false, &body);
		if (r < 0)
			return r;
		req.body = rsb_buf_view(&body);
	}
	r = rsb_http_do(api->http, &req, reply, &why);
	if (r < 0)
		return rsb_diag_set(
			diag, r, "%s: %s (%s)", call->what, rsb_diag_text(&why, r), api->url);
	/* Of whole seconds: it may be the end of this one. */
	api->date_ns = reply->date_s > 0 ? ((uint64_t)reply->date_s + 1) * RSB_NSEC_PER_SEC
					 : rsb_wall_ns();
	r = rsb_answer_control(reply, call->what, diag);
	if (r == -EAGAIN)
		api->retry_after_ns = reply->retry_after_s * RSB_NSEC_PER_SEC;
	return r;
}

int
rsb_api_do(struct rsb_api *api, const struct rsb_api_call *call, struct rsb_json **ret_json,
	char *next, struct rsb_diag *diag)
{
	struct rsb_http_reply reply = { 0 };
	int r = send_call(api, call, &reply, diag);

	if (r == 0 && ret_json) {
		r = rsb_json_parse(rsb_buf_view(&reply.body), ret_json, NULL);
		if (r < 0)
			r = rsb_diag_set(diag, -EBADMSG, "%s: the answer is no JSON", call->what);
	}
	if (r == 0 && next)
		strcpy(next, reply.next_token);
	/* the answer may carry tokens */
	if (reply.body.data)
		explicit_bzero(reply.body.data, reply.body.cap);
	rsb_buf_done(&reply.body);
	return r;
}
