/* SPDX-License-Identifier: MIT */
#include "proto/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/inbox.h"
#include "proto/limits.h"
#include "util/list.h"

/* An ACK is urgent after so many messages, or so much cost (or a quarter of the window if less). */
#define ACK_MESSAGES 16u
#define ACK_COST ((uint64_t)256 << 10)
struct out_msg {
	struct rsb_list link;
	uint64_t digest; /* of the history that ends with this message; once numbered */
	uint64_t mark;   /* the sender's; 0: none */
	size_t size;
	uint8_t data[];
};

/*
 * A message stands in queues[] without a number, then in sent, which holds the numbers
 * acked + 1 .. numbered in order. current is the one of them whose frame at offset goes out next;
 * NULL when all of sent is out on this connection. Those before current are whole on the wire, and
 * no others can be acknowledged: that check is what makes it safe to free them.
 */
struct rsb_stream {
	size_t send_max;
	bool attached;

	struct rsb_list queues[RSB_CLASS_N];
	struct rsb_list sent;
	struct out_msg *current;
	size_t offset;
	uint64_t n_unsent;        /* numbered ones from current on */
	size_t used;              /* cost of queues, sent and reservations */
	unsigned int n_fifo_run;  /* FIFO messages numbered while READ waited */
	uint64_t numbered;        /* messages */
	uint64_t numbered_cost;   /* of all of them since the session began */
	uint64_t numbered_digest; /* of all of them */
	uint64_t acked;
	uint64_t acked_digest;
	uint64_t acked_mark;
	uint64_t peer_limit;

	struct rsb_inbox inbox;
	bool ack_due; /* something below was not said on this connection */
	uint64_t said_received;
	uint64_t said_received_cost;
	uint64_t said_limit;
};

static struct out_msg *
out_entry(struct rsb_list *node)
{
	return rsb_list_entry(node, struct out_msg, link);
}

int
rsb_stream_new(size_t send_max, size_t window, struct rsb_stream **ret_stream)
{
	struct rsb_stream *stream;
	int i;

	if (send_max == 0 || window == 0)
		return -EINVAL;
	stream = rsb_new(struct rsb_stream);
	if (!stream)
		return -ENOMEM;
	stream->send_max = send_max;
	for (i = 0; i < RSB_CLASS_N; i++)
		rsb_list_init(&stream->queues[i]);
	rsb_list_init(&stream->sent);
	stream->numbered_digest = RSB_DIGEST_SEED;
	stream->acked_digest = RSB_DIGEST_SEED;
	rsb_inbox_init(&stream->inbox, window);
	*ret_stream = stream;
	return 0;
}

static void
out_list_free(struct rsb_list *head)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, head)
		free(out_entry(pos));
}

void
rsb_stream_free(struct rsb_stream *stream)
{
	int i;

	if (!stream)
		return;
	for (i = 0; i < RSB_CLASS_N; i++)
		out_list_free(&stream->queues[i]);
	out_list_free(&stream->sent);
	rsb_inbox_done(&stream->inbox);
	free(stream);
}

/* ---- sending ---- */

static int
check_space(const struct rsb_stream *stream, size_t size)
{
	if (size > RSB_MESSAGE_MAX || rsb_message_cost(size) > stream->send_max)
		return -EMSGSIZE;
	return rsb_message_cost(size) > stream->send_max - stream->used ? -EAGAIN : 0;
}

static int
enqueue(struct rsb_stream *stream, enum rsb_class class, struct rsb_bytes msg, uint64_t mark)
{
	struct out_msg *out = malloc(sizeof(*out) + msg.size);

	if (!out)
		return -ENOMEM;
	out->size = msg.size;
	out->mark = mark;
	if (msg.size > 0)
		memcpy(out->data, msg.data, msg.size);
	rsb_list_append(&stream->queues[class], &out->link);
	stream->used += rsb_message_cost(msg.size);
	return 0;
}

int
rsb_stream_send(struct rsb_stream *stream, enum rsb_class class, struct rsb_bytes msg)
{
	int r;

	r = check_space(stream, msg.size);
	return r < 0 ? r : enqueue(stream, class, msg, 0);
}

int
rsb_stream_reserve(struct rsb_stream *stream, size_t size)
{
	int r;

	r = check_space(stream, size);
	if (r < 0)
		return r;
	stream->used += rsb_message_cost(size);
	return 0;
}

int
rsb_stream_send_reserved(struct rsb_stream *stream, enum rsb_class class, struct rsb_bytes msg,
	size_t reserved, uint64_t mark)
{
	int r;

	assert(msg.size <= reserved);
	r = enqueue(stream, class, msg, mark);
	if (r < 0)
		return r;
	rsb_stream_unreserve(stream, reserved);
	return 0;
}

void
rsb_stream_unreserve(struct rsb_stream *stream, size_t reserved)
{
	assert(rsb_message_cost(reserved) <= stream->used);
	stream->used -= rsb_message_cost(reserved);
}

static void
edit(struct rsb_stream *stream, struct out_msg *msg, rsb_stream_edit_fn fn, void *arg)
{
	size_t size = fn(arg, msg->data, msg->size);

	assert(size <= msg->size);
	stream->used -= msg->size - size;
	msg->size = size;
	if (size > 0)
		return;
	stream->used -= rsb_message_cost(0);
	rsb_list_remove(&msg->link);
	free(msg);
}

void
rsb_stream_edit(struct rsb_stream *stream, rsb_stream_edit_fn fn, void *arg)
{
	struct rsb_list *pos, *tmp;
	int i;

	for (i = 0; i < RSB_CLASS_N; i++)
		rsb_list_for_each_safe (pos, tmp, &stream->queues[i])
			edit(stream, out_entry(pos), fn, arg);
}

size_t
rsb_stream_space(const struct rsb_stream *stream)
{
	size_t space = stream->send_max - stream->used;

	return space > RSB_STREAM_COST ? rsb_min(space - RSB_STREAM_COST, (size_t)RSB_MESSAGE_MAX)
				       : 0;
}

/* The class whose turn it is; RSB_CLASS_N: nothing waits. */
static enum rsb_class
pick_class(struct rsb_stream *stream)
{
	bool read_waits = !rsb_list_empty(&stream->queues[RSB_CLASS_READ]);

	if (!rsb_list_empty(&stream->queues[RSB_CLASS_FIFO]) &&
		(!read_waits || stream->n_fifo_run < RSB_STREAM_FIFO_RUN)) {
		stream->n_fifo_run = read_waits ? stream->n_fifo_run + 1 : 0;
		return RSB_CLASS_FIFO;
	}
	stream->n_fifo_run = 0;
	return read_waits ? RSB_CLASS_READ : RSB_CLASS_N;
}

/* Gives the next waiting message its number and makes it current. */
static void
number_next(struct rsb_stream *stream)
{
	struct out_msg *msg;
	enum rsb_class class;

	if (stream->numbered_cost >= stream->peer_limit)
		return;
	class = pick_class(stream);
	if (class == RSB_CLASS_N)
		return;
	msg = out_entry(stream->queues[class].next);
	rsb_list_remove(&msg->link);
	rsb_list_append(&stream->sent, &msg->link);
	stream->numbered++;
	stream->numbered_cost += rsb_message_cost(msg->size);
	stream->numbered_digest = rsb_digest_add(stream->numbered_digest,
		(struct rsb_bytes){ .data = msg->data, .size = msg->size });
	msg->digest = stream->numbered_digest;
	stream->current = msg;
	stream->offset = 0;
	stream->n_unsent = 1;
}

int
rsb_stream_output(struct rsb_stream *stream, struct rsb_frame *ret_frame)
{
	struct out_msg *msg;
	size_t size;
	bool more;

	if (!stream->attached)
		return 0;
	if (!stream->current)
		number_next(stream);
	msg = stream->current;
	if (!msg)
		return 0;
	size = rsb_min(msg->size - stream->offset, (size_t)RSB_FRAME_PAYLOAD_MAX);
	more = stream->offset + size < msg->size;
	*ret_frame = (struct rsb_frame){
		.type = RSB_FRAME_MESSAGE,
		.flags = more ? RSB_FRAME_MORE : 0,
		.a = stream->numbered - stream->n_unsent + 1,
		.payload = { .data = msg->data + stream->offset, .size = size },
	};
	stream->offset += size;
	if (!more) {
		stream->n_unsent--;
		stream->offset = 0;
		stream->current =
			stream->n_unsent > 0 ? out_entry(stream->current->link.next) : NULL;
	}
	return 1;
}

/* The peer has our messages up to number received. */
static void
release(struct rsb_stream *stream, uint64_t received)
{
	while (stream->acked < received) {
		struct out_msg *msg = out_entry(stream->sent.next);

		rsb_list_remove(&msg->link);
		stream->used -= rsb_message_cost(msg->size);
		stream->acked_digest = msg->digest;
		stream->acked_mark = rsb_max(stream->acked_mark, msg->mark);
		stream->acked++;
		free(msg);
	}
}

uint64_t
rsb_stream_acked(const struct rsb_stream *stream)
{
	return stream->acked;
}

uint64_t
rsb_stream_acked_mark(const struct rsb_stream *stream)
{
	return stream->acked_mark;
}

bool
rsb_stream_waits_for_ack(const struct rsb_stream *stream)
{
	return stream->acked < stream->numbered;
}

/* ---- receiving ---- */

const struct rsb_msg *
rsb_stream_peek(const struct rsb_stream *stream)
{
	return stream->inbox.first;
}

struct rsb_msg *
rsb_stream_take(struct rsb_stream *stream)
{
	struct rsb_msg *msg = rsb_inbox_take(&stream->inbox);

	stream->ack_due |= msg != NULL;
	return msg;
}

static int
input_message(struct rsb_stream *stream, const struct rsb_frame *frame)
{
	int r;

	r = rsb_inbox_input(&stream->inbox, frame);
	if (r < 0)
		return r;
	stream->ack_due |= r > 0;
	return 0;
}

static int
input_ack(struct rsb_stream *stream, const struct rsb_frame *frame)
{
	if (frame->flags != 0 || frame->payload.size != 0)
		return -EBADMSG;
	if (frame->a < stream->acked || frame->a > stream->numbered - stream->n_unsent ||
		frame->b < stream->peer_limit)
		return -EBADMSG;
	release(stream, frame->a);
	stream->peer_limit = frame->b;
	return 0;
}

int
rsb_stream_input(struct rsb_stream *stream, const struct rsb_frame *frame)
{
	if (!stream->attached)
		return -EBADMSG;
	switch (frame->type) {
	case RSB_FRAME_MESSAGE:
		return input_message(stream, frame);
	case RSB_FRAME_ACK:
		return input_ack(stream, frame);
	default:
		return -EBADMSG;
	}
}

enum rsb_stream_ack
rsb_stream_ack_due(const struct rsb_stream *stream)
{
	uint64_t step = rsb_min(ACK_COST, (uint64_t)stream->inbox.window / 4);

	if (!stream->attached || !stream->ack_due)
		return RSB_STREAM_ACK_NONE;
	if (stream->inbox.received - stream->said_received >= ACK_MESSAGES ||
		stream->inbox.received_cost - stream->said_received_cost > step ||
		rsb_inbox_limit(&stream->inbox) - stream->said_limit > step)
		return RSB_STREAM_ACK_URGENT;
	return RSB_STREAM_ACK_LAZY;
}

void
rsb_stream_output_ack(struct rsb_stream *stream, struct rsb_frame *ret_frame)
{
	*ret_frame = (struct rsb_frame){
		.type = RSB_FRAME_ACK,
		.a = stream->inbox.received,
		.b = rsb_inbox_limit(&stream->inbox),
	};
	stream->ack_due = false;
	stream->said_received = stream->inbox.received;
	stream->said_received_cost = stream->inbox.received_cost;
	stream->said_limit = rsb_inbox_limit(&stream->inbox);
}

/* ---- connections ---- */

void
rsb_stream_state(const struct rsb_stream *stream, struct rsb_stream_state *ret_state)
{
	*ret_state = (struct rsb_stream_state){
		.received = stream->inbox.received,
		.acked = stream->acked,
		.limit = rsb_inbox_limit(&stream->inbox),
		.digest = stream->inbox.digest,
	};
}

/* Of our messages up to number received, which is within acked..numbered. */
static uint64_t
digest_at(struct rsb_stream *stream, uint64_t received)
{
	uint64_t digest = stream->acked_digest, number = stream->acked;
	struct rsb_list *pos;

	rsb_list_for_each (pos, &stream->sent) {
		if (number == received)
			break;
		digest = out_entry(pos)->digest;
		number++;
	}
	return digest;
}

int
rsb_stream_attach(struct rsb_stream *stream, const struct rsb_stream_state *peer)
{
	if (peer->received < stream->acked || peer->received > stream->numbered ||
		peer->acked > stream->inbox.received || peer->limit < stream->peer_limit)
		return -ESTALE;
	if (peer->digest != 0 && peer->digest != digest_at(stream, peer->received))
		return -ESTALE;
	rsb_stream_detach(stream);
	release(stream, peer->received);
	stream->peer_limit = peer->limit;
	stream->n_unsent = stream->numbered - stream->acked;
	stream->current = stream->n_unsent > 0 ? out_entry(stream->sent.next) : NULL;
	stream->offset = 0;
	/* What hello and welcome said may be old by now. */
	stream->ack_due = true;
	stream->attached = true;
	return 0;
}

static void
tell_all(const struct rsb_list *list, void (*seen)(void *arg, struct rsb_bytes msg), void *arg)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, list) {
		const struct out_msg *msg = out_entry(pos);

		seen(arg, (struct rsb_bytes){ .data = msg->data, .size = msg->size });
	}
}

void
rsb_stream_restart(
	struct rsb_stream *stream, void (*seen)(void *arg, struct rsb_bytes msg), void *arg)
{
	struct rsb_list *fifo = &stream->queues[RSB_CLASS_FIFO];
	size_t window = stream->inbox.window;

	rsb_stream_detach(stream);
	/* All in one class: between replies no order counts, and these are the oldest. */
	while (!rsb_list_empty(&stream->sent)) {
		struct rsb_list *last = stream->sent.prev;

		rsb_list_remove(last);
		rsb_list_prepend(fifo, last);
	}
	for (int i = 0; i < RSB_CLASS_N; i++)
		tell_all(&stream->queues[i], seen, arg);
	stream->current = NULL;
	stream->offset = 0;
	stream->n_unsent = 0;
	stream->numbered = 0;
	stream->numbered_cost = 0;
	stream->numbered_digest = RSB_DIGEST_SEED;
	stream->acked = 0;
	stream->acked_digest = RSB_DIGEST_SEED;
	stream->peer_limit = 0;
	rsb_inbox_done(&stream->inbox);
	rsb_inbox_init(&stream->inbox, window);
	stream->said_received = 0;
	stream->said_received_cost = 0;
	stream->said_limit = 0;
}

void
rsb_stream_detach(struct rsb_stream *stream)
{
	stream->attached = false;
	rsb_inbox_detach(&stream->inbox);
}
