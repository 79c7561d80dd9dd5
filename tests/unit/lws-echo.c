/* SPDX-License-Identifier: MIT */
#include "tests/unit/lws-echo.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <libwebsockets.h>

#include "proto/limits.h"
#include "util/fd.h"

struct item {
	uint8_t *data; /* LWS_PRE bytes of room, then the payload */
	size_t size;
};

struct lws_side {
	struct item queue[LWS_ECHO_QUEUE_MAX];
	size_t first, n;
	uint8_t *joining;
	size_t joined;
	bool ping;
	int report_fd;
	bool ended;
};

static void
enqueue(struct lws_side *side, struct lws *wsi, const char *prefix, const void *data, size_t size)
{
	const size_t n = strlen(prefix);
	struct item *item = &side->queue[(side->first + side->n) % LWS_ECHO_QUEUE_MAX];

	if (side->n == LWS_ECHO_QUEUE_MAX)
		abort();
	item->data = malloc(LWS_PRE + n + size + 1);
	if (!item->data)
		abort();
	memcpy(item->data + LWS_PRE, prefix, n);
	if (size > 0)
		memcpy(item->data + LWS_PRE + n, data, size);
	item->size = n + size;
	side->n++;
	lws_callback_on_writable(wsi);
}

static int
write_item(struct lws *wsi, const struct item *item)
{
	uint8_t *data = item->data + LWS_PRE;
	const size_t third = item->size / 3;

	if (item->size == 0 || data[0] != 'F')
		return lws_write(wsi, data, item->size, LWS_WRITE_BINARY);
	/* libwebsockets writes its heads in front of the payload: each part is a copy. */
	for (size_t part = 0; part < 3; part++) {
		const size_t size = part < 2 ? third : item->size - 2 * third;
		uint8_t *copy = malloc(LWS_PRE + size + 1);
		int flags = part == 0 ? LWS_WRITE_BINARY : LWS_WRITE_CONTINUATION;

		memcpy(copy + LWS_PRE, data + part * third, size);
		if (part < 2)
			flags |= LWS_WRITE_NO_FIN;
		if (lws_write(wsi, copy + LWS_PRE, size, (enum lws_write_protocol)flags) < 0)
			abort();
		free(copy);
	}
	return 0;
}

static int
on_writable(struct lws_side *side, struct lws *wsi)
{
	uint8_t ping[LWS_PRE + sizeof(LWS_ECHO_PING)];
	struct item *item = &side->queue[side->first];
	int r;

	if (side->ping) {
		side->ping = false;
		memcpy(ping + LWS_PRE, LWS_ECHO_PING, sizeof(LWS_ECHO_PING) - 1);
		return lws_write(wsi, ping + LWS_PRE, sizeof(LWS_ECHO_PING) - 1, LWS_WRITE_PING) < 0
			       ? -1
			       : 0;
	}
	if (side->n == 0)
		return 0;
	r = write_item(wsi, item);
	free(item->data);
	side->first = (side->first + 1) % LWS_ECHO_QUEUE_MAX;
	side->n--;
	if (side->n > 0)
		lws_callback_on_writable(wsi);
	return r < 0 ? -1 : 0;
}

/* -1 closes the connection. */
static int
on_message(struct lws_side *side, struct lws *wsi, const uint8_t *data, size_t size)
{
	if (size == 1 && data[0] == 'P') {
		side->ping = true;
		lws_callback_on_writable(wsi);
		return 0;
	}
	if (size == 3 && data[0] == 'C') {
		lws_close_reason(wsi, (enum lws_close_status)(data[1] << 8 | data[2]), NULL, 0);
		return -1;
	}
	enqueue(side, wsi, "", data, size);
	return 0;
}

static int
on_receive(struct lws_side *side, struct lws *wsi, const void *data, size_t size)
{
	if (lws_frame_is_binary(wsi) != 1 || side->joined + size > RSB_FRAME_MAX)
		abort();
	if (size > 0)
		memcpy(side->joining + side->joined, data, size);
	side->joined += size;
	if (lws_remaining_packet_payload(wsi) > 0 || !lws_is_final_fragment(wsi))
		return 0;
	size = side->joined;
	side->joined = 0;
	return on_message(side, wsi, side->joining, size);
}

static int
callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct lws_side *side = lws_context_user(lws_get_context(wsi));

	(void)user;
	switch ((int)reason) {
	case LWS_CALLBACK_RECEIVE:
	case LWS_CALLBACK_CLIENT_RECEIVE:
		return on_receive(side, wsi, in, len);
	case LWS_CALLBACK_SERVER_WRITEABLE:
	case LWS_CALLBACK_CLIENT_WRITEABLE:
		return on_writable(side, wsi);
	case LWS_CALLBACK_RECEIVE_PONG:
	case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
		enqueue(side, wsi, "pong:", in, len);
		return 0;
	case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
		return rsb_fd_write_full(side->report_fd, in, rsb_min(len, (size_t)2)) < 0 ? -1 : 0;
	case LWS_CALLBACK_CLOSED:
	case LWS_CALLBACK_CLIENT_CLOSED:
	case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
		side->ended = true;
		return 0;
	default:
		return 0;
	}
}

static const struct lws_protocols protocols[] = {
	{ .name = "rsb", .callback = callback, .rx_buffer_size = RSB_FRAME_MAX },
	{ .name = NULL },
};

int
lws_echo(int port, int report_fd)
{
	struct lws_side side = { .report_fd = report_fd };
	struct lws_context_creation_info info = {
		.port = port == 0 ? 0 : CONTEXT_PORT_NO_LISTEN,
		.iface = "127.0.0.1",
		.protocols = protocols,
		.pt_serv_buf_size = RSB_FRAME_MAX,
		.user = &side,
		.gid = -1,
		.uid = -1,
	};
	struct lws_client_connect_info client = {
		.address = "127.0.0.1", .port = port, .path = "/rsb", .host = "h", .origin = "h"
	};
	struct lws_context *context;
	uint16_t listening;

	lws_set_log_level(LLL_ERR, NULL);
	side.joining = malloc(RSB_FRAME_MAX);
	context = lws_create_context(&info);
	if (!context || !side.joining)
		return 1;
	client.context = context;
	if (port == 0) {
		listening = (uint16_t)lws_get_vhost_listen_port(
			lws_get_vhost_by_name(context, "default"));
		if (rsb_fd_write_full(report_fd, &listening, sizeof(listening)) < 0)
			return 1;
	} else if (!lws_client_connect_via_info(&client)) {
		return 1;
	}
	while (!side.ended && lws_service(context, 0) >= 0)
		;
	lws_context_destroy(context);
	free(side.joining);
	return 0;
}
