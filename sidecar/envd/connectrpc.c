/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/connectrpc.h"

#include <errno.h>

#include "util/cleanup.h"
#include "util/json.h"

struct code {
	const char *name;
	unsigned int status;
};

static const struct code codes[] = {
	[RSB_CONNECTRPC_OK] = { "ok", 200 },
	[RSB_CONNECTRPC_INVALID_ARGUMENT] = { "invalid_argument", 400 },
	[RSB_CONNECTRPC_DEADLINE_EXCEEDED] = { "deadline_exceeded", 504 },
	[RSB_CONNECTRPC_NOT_FOUND] = { "not_found", 404 },
	[RSB_CONNECTRPC_RESOURCE_EXHAUSTED] = { "resource_exhausted", 429 },
	[RSB_CONNECTRPC_UNIMPLEMENTED] = { "unimplemented", 501 },
	[RSB_CONNECTRPC_INTERNAL] = { "internal", 500 },
	[RSB_CONNECTRPC_UNAUTHENTICATED] = { "unauthenticated", 401 },
};

const char *
rsb_connectrpc_name(enum rsb_connectrpc_code code)
{
	return codes[code].name;
}

unsigned int
rsb_connectrpc_status(enum rsb_connectrpc_code code)
{
	return codes[code].status;
}

int
rsb_connectrpc_frame(struct rsb_buf *out, uint8_t flags, struct rsb_bytes message)
{
	uint8_t head[RSB_CONNECTRPC_HEAD];
	uint8_t *tail;
	int r;

	if (message.size > UINT32_MAX)
		return -EMSGSIZE;
	head[0] = flags;
	for (unsigned int i = 0; i < 4; i++)
		head[1 + i] = (uint8_t)(message.size >> (24 - 8 * i));
	/* Room for both first: half an envelope would spoil the stream. */
	r = rsb_buf_reserve(out, sizeof(head) + message.size, &tail);
	if (r < 0)
		return r;
	r = rsb_buf_append(out, head, sizeof(head));
	if (r < 0)
		return r;
	return rsb_buf_append(out, message.data, message.size);
}

static int
error_object(enum rsb_connectrpc_code code, const char *message, struct rsb_json **ret_json)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	int r;

	if (!json)
		return -ENOMEM;
	r = rsb_json_set_str(json, "code", rsb_connectrpc_name(code));
	if (r < 0)
		return r;
	/* A message with bytes that are no UTF-8 is left out rather than the whole error. */
	if (message)
		(void)!rsb_json_set_str(json, "message", message);
	*ret_json = rsb_steal(&json);
	return 0;
}

int
rsb_connectrpc_error(struct rsb_buf *out, enum rsb_connectrpc_code code, const char *message)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = NULL;
	int r = error_object(code, message, &json);

	return r < 0 ? r : rsb_json_write(json, false, out);
}

int
rsb_connectrpc_end(struct rsb_buf *out, enum rsb_connectrpc_code code, const char *message)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	struct rsb_json *error = NULL;
	int r;

	if (!json)
		return -ENOMEM;
	if (code != RSB_CONNECTRPC_OK) {
		r = error_object(code, message, &error);
		if (r < 0)
			return r;
		r = rsb_json_set(json, "error", error);
		if (r < 0)
			return r;
	}
	r = rsb_json_write(json, false, &text);
	if (r < 0)
		return r;
	return rsb_connectrpc_frame(out, RSB_CONNECTRPC_END, rsb_buf_view(&text));
}

int
rsb_connectrpc_next(const struct rsb_buf *in, uint8_t *ret_flags, struct rsb_bytes *ret_message)
{
	const uint8_t *head = rsb_buf_head(in);
	size_t size;

	if (rsb_buf_len(in) < RSB_CONNECTRPC_HEAD)
		return 0;
	size = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
	if (size > RSB_CONNECTRPC_MESSAGE_MAX)
		return -EMSGSIZE;
	if (head[0] != RSB_CONNECTRPC_MESSAGE && head[0] != RSB_CONNECTRPC_END)
		return -EBADMSG;
	if (rsb_buf_len(in) - RSB_CONNECTRPC_HEAD < size)
		return 0;
	*ret_flags = head[0];
	*ret_message = (struct rsb_bytes){ .data = head + RSB_CONNECTRPC_HEAD, .size = size };
	return 1;
}
