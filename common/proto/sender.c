/* SPDX-License-Identifier: MIT */
#include "proto/sender.h"

#include <errno.h>
#include <limits.h>

#include "proto/limits.h"

void
rsb_sender_init(struct rsb_sender *sender, size_t buffer_max, uint64_t credit, bool attached)
{
	*sender = (struct rsb_sender){
		.limit = credit,
		.known = credit > 0,
		.waiting = credit == 0 || !attached,
	};
	rsb_buf_init(&sender->buf, buffer_max);
}

void
rsb_sender_done(struct rsb_sender *sender)
{
	rsb_buf_done(&sender->buf);
}

size_t
rsb_sender_room(const struct rsb_sender *sender)
{
	return sender->finished ? 0 : sender->buf.max - rsb_buf_len(&sender->buf);
}

int
rsb_sender_write(struct rsb_sender *sender, struct rsb_bytes data)
{
	size_t size = rsb_min(data.size, rsb_sender_room(sender));
	int r;

	if (sender->finished)
		return -EPIPE;
	/* The count has to fit an int. */
	size = rsb_min(size, (size_t)INT_MAX);
	r = rsb_buf_append(&sender->buf, data.data, size);
	if (r < 0)
		return r;
	sender->starved = size < data.size;
	return (int)size;
}

void
rsb_sender_finish(struct rsb_sender *sender)
{
	sender->finished = true;
	sender->starved = false;
}

void
rsb_sender_attach(struct rsb_sender *sender)
{
	/* A receiver that has everything may be gone, and is then rightly unknown over there. */
	sender->probe = sender->known && !sender->drained;
}

void
rsb_sender_detach(struct rsb_sender *sender)
{
	sender->waiting = true;
	sender->probe = false;
	sender->sent = sender->base;
	sender->fin_sent = false;
}

bool
rsb_sender_ready(const struct rsb_sender *sender)
{
	uint64_t written = rsb_sender_written(sender);

	if (sender->waiting)
		return sender->probe;
	if (sender->sent < written)
		return sender->sent < sender->limit;
	return sender->finished && !sender->fin_sent;
}

void
rsb_sender_output(struct rsb_sender *sender, struct rsb_frame *ret_frame)
{
	size_t offset = (size_t)(sender->sent - sender->base);
	uint64_t left = rsb_sender_written(sender) - sender->sent;
	size_t size;

	ret_frame->type = RSB_FRAME_STREAM;
	ret_frame->flags = 0;
	ret_frame->b = sender->sent;
	ret_frame->payload = (struct rsb_bytes){ 0 };
	if (sender->waiting) {
		sender->probe = false;
		return;
	}
	size = (size_t)rsb_min(left, (uint64_t)RSB_FRAME_PAYLOAD_MAX);
	size = (size_t)rsb_min((uint64_t)size, sender->limit - sender->sent);
	if (size > 0)
		ret_frame->payload = (struct rsb_bytes){
			.data = rsb_buf_head(&sender->buf) + offset,
			.size = size,
		};
	sender->sent += size;
	sender->high = rsb_max(sender->high, sender->sent);
	if (sender->finished && size == left) {
		ret_frame->flags = RSB_FRAME_FIN;
		sender->fin_sent = true;
		sender->fin_high = true;
	}
}

/* received counts an end that arrived as one byte more. */
static bool
is_possible(const struct rsb_sender *sender, uint64_t received, uint64_t limit)
{
	bool fin = sender->waiting ? sender->fin_high : sender->fin_sent;
	uint64_t most = (sender->waiting ? sender->high : sender->sent) + (fin ? 1 : 0);
	uint64_t least = sender->base + (sender->drained ? 1 : 0);

	return received >= least && received <= most && limit >= sender->limit;
}

int
rsb_sender_credit(
	struct rsb_sender *sender, uint64_t received, uint64_t limit, uint64_t *ret_delivered)
{
	uint64_t written = rsb_sender_written(sender), delivered;

	if (!is_possible(sender, received, limit))
		return sender->waiting ? -ESTALE : -EBADMSG;
	sender->drained = sender->finished && received > written;
	delivered = rsb_min(received, written) - sender->base;
	rsb_buf_consume(&sender->buf, (size_t)delivered);
	sender->base += delivered;
	/* A stream that once was behind should not keep its window in memory for ever. */
	if (rsb_buf_len(&sender->buf) == 0 && sender->buf.cap > RSB_CHAN_WINDOW)
		rsb_buf_done(&sender->buf);
	if (sender->waiting) {
		sender->sent = sender->base;
		sender->fin_sent = sender->drained;
		sender->waiting = false;
		sender->known = true;
	}
	sender->limit = limit;
	*ret_delivered = delivered;
	return 0;
}

bool
rsb_sender_take_starved(struct rsb_sender *sender)
{
	bool starved = sender->starved && rsb_sender_room(sender) > 0;

	if (starved)
		sender->starved = false;
	return starved;
}
