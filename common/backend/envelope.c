/* SPDX-License-Identifier: MIT */
#include "backend/envelope.h"

#include <errno.h>

#define HEAD 5

int
rsb_envelope_write(struct rsb_bytes payload, struct rsb_buf *out)
{
	const uint8_t head[HEAD] = {
		0,
		(uint8_t)(payload.size >> 24),
		(uint8_t)(payload.size >> 16),
		(uint8_t)(payload.size >> 8),
		(uint8_t)payload.size,
	};
	int r;

	if (payload.size > RSB_ENVELOPE_MAX)
		return -EMSGSIZE;
	r = rsb_buf_append(out, head, sizeof(head));
	if (r < 0)
		return r;
	return rsb_buf_append(out, payload.data, payload.size);
}

void
rsb_envelope_reader_init(struct rsb_envelope_reader *reader)
{
	reader->used = 0;
	/* a whole frame, and what libcurl hands on in one piece behind it */
	rsb_buf_init(&reader->in, 2 * RSB_ENVELOPE_MAX);
}

void
rsb_envelope_reader_done(struct rsb_envelope_reader *reader)
{
	rsb_buf_done(&reader->in);
}

int
rsb_envelope_reader_add(struct rsb_envelope_reader *reader, struct rsb_bytes data)
{
	return rsb_buf_append(&reader->in, data.data, data.size);
}

int
rsb_envelope_reader_next(
	struct rsb_envelope_reader *reader, uint8_t *ret_flags, struct rsb_bytes *ret_payload)
{
	const uint8_t *head;
	size_t size;

	rsb_buf_consume(&reader->in, reader->used);
	reader->used = 0;
	if (rsb_buf_len(&reader->in) < HEAD)
		return 0;
	head = rsb_buf_head(&reader->in);
	size = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
	if (size > RSB_ENVELOPE_MAX)
		return -EMSGSIZE;
	if (head[0] & 1)
		return -EBADMSG;
	if (rsb_buf_len(&reader->in) < HEAD + size)
		return 0;
	reader->used = HEAD + size;
	*ret_flags = head[0];
	*ret_payload = (struct rsb_bytes){ .data = head + HEAD, .size = size };
	return 1;
}
