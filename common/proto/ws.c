/* SPDX-License-Identifier: MIT */
#include "proto/ws.h"

#include <errno.h>
#include <string.h>

#include "proto/limits.h"
#include "util/secret.h"

#define FIN 0x80
#define RESERVED 0x70
#define MASKED 0x80
#define LENGTH 0x7f
#define CONTROL_MAX 125u
#define HEAD_MAX 14u

enum opcode {
	CONTINUATION = 0x0,
	TEXT = 0x1,
	BINARY = 0x2,
	CLOSE = 0x8,
	PING = 0x9,
	PONG = 0xa,
};

/* RFC 6455 7.4.1 */
enum code { CODE_PROTOCOL = 1002, CODE_UNSUPPORTED = 1003, CODE_TOO_BIG = 1009 };

struct head {
	uint8_t opcode;
	bool fin;
	size_t head_size;
	size_t size; /* of the payload */
	uint8_t mask[4];
};

int
rsb_ws_init(struct rsb_ws *ws, enum rsb_ws_role role)
{
	*ws = (struct rsb_ws){ .role = role };
	rsb_buf_init(&ws->partial, RSB_FRAME_MAX);
	return 0;
}

void
rsb_ws_done(struct rsb_ws *ws)
{
	rsb_buf_done(&ws->partial);
}

/*
 * dst and src are the same or do not overlap. Whole words: this runs over every byte of the link.
 */
static void
apply_mask(uint8_t *dst, const uint8_t *src, size_t size, const uint8_t mask[static 4])
{
	uint64_t word, mask64;
	size_t i = 0;

	memcpy(&mask64, mask, 4);
	memcpy((uint8_t *)&mask64 + 4, mask, 4);
	for (; i + 8 <= size; i += 8) {
		memcpy(&word, src + i, 8);
		word ^= mask64;
		memcpy(dst + i, &word, 8);
	}
	for (; i < size; i++)
		dst[i] = src[i] ^ mask[i % 4];
}

static int
fresh_mask(struct rsb_ws *ws, uint8_t ret_mask[static 4])
{
	int r;

	if (ws->n_mask == 0) {
		r = rsb_random(ws->masks, sizeof(ws->masks));
		if (r < 0)
			return r;
		ws->n_mask = RSB_WS_MASKS;
	}
	memcpy(ret_mask, &ws->masks[--ws->n_mask], 4);
	return 0;
}

static size_t
put_head(uint8_t *p, enum opcode opcode, uint8_t masked, size_t size)
{
	p[0] = (uint8_t)(FIN | opcode);
	if (size <= CONTROL_MAX) {
		p[1] = (uint8_t)(masked | size);
		return 2;
	}
	if (size <= UINT16_MAX) {
		p[1] = masked | 126;
		p[2] = (uint8_t)(size >> 8);
		p[3] = (uint8_t)size;
		return 4;
	}
	p[1] = masked | 127;
	for (size_t i = 0; i < 8; i++)
		p[2 + i] = (uint8_t)((uint64_t)size >> (56 - 8 * i));
	return 10;
}

static int
put_frame(struct rsb_ws *ws, enum opcode opcode, struct rsb_bytes payload, struct rsb_buf *out)
{
	uint8_t mask[4];
	size_t n;
	uint8_t *p;
	int r;

	r = rsb_buf_reserve(out, HEAD_MAX + payload.size, &p);
	if (r < 0)
		return r;
	n = put_head(p, opcode, ws->role == RSB_WS_CLIENT ? MASKED : 0, payload.size);
	if (ws->role == RSB_WS_CLIENT) {
		r = fresh_mask(ws, mask);
		if (r < 0)
			return r;
		memcpy(p + n, mask, 4);
		n += 4;
		apply_mask(p + n, payload.data, payload.size, mask);
	} else if (payload.size > 0) {
		memcpy(p + n, payload.data, payload.size);
	}
	rsb_buf_commit(out, n + payload.size);
	return 0;
}

int
rsb_ws_send(struct rsb_ws *ws, struct rsb_bytes msg, struct rsb_buf *out)
{
	if (ws->close_sent)
		return -ENOTCONN;
	if (msg.size > RSB_FRAME_MAX)
		return -EMSGSIZE;
	return put_frame(ws, BINARY, msg, out);
}

int
rsb_ws_close(struct rsb_ws *ws, uint16_t code, struct rsb_buf *out)
{
	const uint8_t payload[2] = { (uint8_t)(code >> 8), (uint8_t)code };
	int r;

	if (ws->close_sent)
		return 0;
	r = put_frame(ws, CLOSE, (struct rsb_bytes){ payload, sizeof(payload) }, out);
	if (r < 0)
		return r;
	ws->close_sent = true;
	return 0;
}

/* The connection is broken: says so, and returns r. */
static int
fail(struct rsb_ws *ws, enum code code, int r, struct rsb_buf *out)
{
	int sent = rsb_ws_close(ws, (uint16_t)code, out);

	return sent < 0 ? sent : r;
}

/*
 * The length at p + 1, minimal (RFC 6455 5.2). Bytes of the head without mask; 0: more are needed.
 */
static int
take_size(const uint8_t *p, size_t left, uint64_t *ret_size)
{
	uint64_t size = p[1] & LENGTH;
	size_t n = 2;

	if (size >= 126) {
		const size_t n_byte = size == 126 ? 2 : 8;
		const uint64_t min = size == 126 ? 126 : UINT16_MAX + 1;

		if (left < n + n_byte)
			return 0;
		for (size = 0; n < 2 + n_byte; n++)
			size = size << 8 | p[n];
		if (size < min)
			return -EPROTO;
	}
	*ret_size = size;
	return (int)n;
}

static bool
is_known(uint8_t opcode)
{
	return opcode <= BINARY || (opcode >= CLOSE && opcode <= PONG);
}

/* 1 with the head of a frame, 0: more bytes are needed, or an error. */
static int
take_head(const struct rsb_ws *ws, const uint8_t *p, size_t left, struct head *ret_head)
{
	const bool masked = ws->role == RSB_WS_SERVER;
	struct head h;
	uint64_t size;
	int r;

	if (left < 2)
		return 0;
	h.opcode = p[0] & 0x0f;
	h.fin = (p[0] & FIN) != 0;
	if ((p[0] & RESERVED) != 0 || !is_known(h.opcode) || ((p[1] & MASKED) != 0) != masked)
		return -EPROTO;
	if (h.opcode >= CLOSE && (!h.fin || (p[1] & LENGTH) > CONTROL_MAX))
		return -EPROTO;
	r = take_size(p, left, &size);
	if (r <= 0)
		return r;
	if (size > RSB_FRAME_MAX)
		return -EMSGSIZE;
	h.size = (size_t)size;
	h.head_size = (size_t)r + (masked ? 4 : 0);
	if (left < h.head_size)
		return 0;
	memset(h.mask, 0, sizeof(h.mask));
	if (masked)
		memcpy(h.mask, p + r, 4);
	*ret_head = h;
	return 1;
}

/*
 * RFC 6455 7.4: 1005, 1006 and 1015 are never sent; the rest of 1000..2999 is not ours to
 * understand.
 */
static bool
is_close_code(unsigned int code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
	       (code >= 3000 && code <= 4999);
}

static int
on_close(struct rsb_ws *ws, struct rsb_bytes payload, struct rsb_buf *out)
{
	unsigned int code = 1000;
	int r;

	if (payload.size == 1)
		return -EPROTO;
	if (payload.size >= 2) {
		code = (unsigned int)payload.data[0] << 8 | payload.data[1];
		if (!is_close_code(code))
			return -EPROTO;
	}
	ws->close_received = true;
	r = rsb_ws_close(ws, (uint16_t)code, out);
	return r < 0 ? r : -ECONNRESET;
}

static int
on_control(struct rsb_ws *ws, uint8_t opcode, struct rsb_bytes payload, struct rsb_buf *out)
{
	if (opcode == CLOSE)
		return on_close(ws, payload, out);
	if (opcode == PING && !ws->close_sent)
		return put_frame(ws, PONG, payload, out);
	return 0;
}

/* 1: *payload is a whole message. */
static int
on_data(struct rsb_ws *ws, const struct head *h, struct rsb_bytes *payload)
{
	int r;

	if (h->opcode == TEXT)
		return -EBADMSG;
	if ((h->opcode == CONTINUATION) != ws->in_fragments)
		return -EPROTO;
	if (h->opcode == BINARY && h->fin)
		return 1;
	r = rsb_buf_append(&ws->partial, payload->data, payload->size);
	if (r < 0)
		return r;
	ws->in_fragments = !h->fin;
	*payload = rsb_buf_view(&ws->partial);
	return h->fin;
}

/* One whole frame, unmasked. 1: *payload is a message. */
static int
on_frame(struct rsb_ws *ws, const struct head *h, struct rsb_bytes *payload, struct rsb_buf *out)
{
	if (h->opcode >= CLOSE)
		return on_control(ws, h->opcode, *payload, out);
	return on_data(ws, h, payload);
}

static int
take_frames(struct rsb_ws *ws, struct rsb_buf *in, struct rsb_buf *out, struct rsb_bytes *ret_msg,
	size_t *ret_used)
{
	uint8_t *p = in->data ? in->data + in->off : NULL;
	size_t left = rsb_buf_len(in);
	struct rsb_bytes payload;
	struct head h;
	int r;

	for (;;) {
		r = take_head(ws, p, left, &h);
		if (r < 0)
			return r;
		if (r == 0 || h.size > left - h.head_size) {
			r = 0;
			break;
		}
		p += h.head_size;
		if (ws->role == RSB_WS_SERVER)
			apply_mask(p, p, h.size, h.mask);
		payload = (struct rsb_bytes){ p, h.size };
		r = on_frame(ws, &h, &payload, out);
		if (r < 0)
			return r;
		p += h.size;
		left -= h.head_size + h.size;
		if (r > 0)
			break;
	}
	*ret_used = rsb_buf_len(in) - left;
	if (r > 0)
		*ret_msg = payload;
	return r;
}

int
rsb_ws_input(struct rsb_ws *ws, struct rsb_buf *in, struct rsb_buf *out, struct rsb_bytes *ret_msg,
	size_t *ret_used)
{
	int r;

	if (ws->close_received)
		return -ECONNRESET;
	/* The message that the last call handed out. */
	if (!ws->in_fragments)
		rsb_buf_clear(&ws->partial);
	r = take_frames(ws, in, out, ret_msg, ret_used);
	if (r == -EPROTO)
		return fail(ws, CODE_PROTOCOL, r, out);
	if (r == -EMSGSIZE)
		return fail(ws, CODE_TOO_BIG, r, out);
	if (r == -EBADMSG)
		return fail(ws, CODE_UNSUPPORTED, r, out);
	return r;
}
