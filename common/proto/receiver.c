/* SPDX-License-Identifier: MIT */
#include "proto/receiver.h"

#include <assert.h>
#include <errno.h>

#include "proto/limits.h"

void
rsb_receiver_init(struct rsb_receiver *receiver, size_t window_max)
{
	*receiver = (struct rsb_receiver){
		.window = RSB_CHAN_WINDOW,
		.window_max = rsb_max(window_max, (size_t)RSB_CHAN_WINDOW),
	};
	rsb_receiver_attach(receiver);
}

void
rsb_receiver_attach(struct rsb_receiver *receiver)
{
	receiver->due = true;
	receiver->urgent = true;
}

static void
note_news(struct rsb_receiver *receiver)
{
	receiver->due = true;
	if (receiver->fin ||
		rsb_receiver_limit(receiver) - receiver->said_limit >= receiver->window / 4 ||
		receiver->received - receiver->said_received >= RSB_RECEIVER_STEP)
		receiver->urgent = true;
}

int
rsb_receiver_input(struct rsb_receiver *receiver, const struct rsb_frame *frame)
{
	size_t size = frame->payload.size;
	bool fin = frame->flags & RSB_FRAME_FIN;

	if (frame->flags & ~RSB_FRAME_FIN)
		return -EBADMSG;
	/* A sender that asks where we are does not know the offset. */
	if (size == 0 && !fin)
		return 0;
	if (receiver->fin || frame->b != receiver->received ||
		size > rsb_receiver_limit(receiver) - receiver->received)
		return -EBADMSG;
	receiver->received += size;
	receiver->fin = fin;
	note_news(receiver);
	return 1;
}

void
rsb_receiver_consume(struct rsb_receiver *receiver, size_t size)
{
	assert(size <= receiver->received - receiver->consumed);
	receiver->consumed += size;
	if (receiver->fin)
		return;
	/* A whole window went through and nothing is left over: the application keeps up. */
	if (receiver->consumed == receiver->received &&
		receiver->consumed - receiver->grown_at >= receiver->window) {
		receiver->window = rsb_min(receiver->window * 2, receiver->window_max);
		receiver->grown_at = receiver->consumed;
	}
	note_news(receiver);
}

void
rsb_receiver_said(struct rsb_receiver *receiver)
{
	receiver->due = false;
	receiver->urgent = false;
	receiver->said_received = receiver->received;
	receiver->said_limit = rsb_receiver_limit(receiver);
}
