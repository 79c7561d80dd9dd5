/* SPDX-License-Identifier: MIT */
#include "proto/chan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "proto/errmap.h"
#include "proto/limits.h"
#include "proto/roster.h"

/* One list a purpose. An open channel is in one of them at most, and in none while detached. */
struct rsb_chans {
	const struct rsb_chan_ops *ops;
	void *arg;
	struct rsb_roster roster;
	bool attached;
	struct rsb_list ready;  /* senders in turn */
	struct rsb_list urgent; /* receivers with a CREDIT due */
	struct rsb_list lazy;   /* the same, but it can wait a moment */
	uint64_t in_flight;     /* sum of sent - base of the senders */
	uint64_t delivered;
	uint64_t unsaid; /* bytes received in all, since the last CREDIT of each */
};

static struct rsb_chan *
chan_entry(struct rsb_list *node)
{
	return rsb_list_entry(node, struct rsb_chan, link);
}

static struct rsb_chan *
find(const struct rsb_chans *chans, uint64_t id, enum rsb_chan_kind kind)
{
	struct rsb_chan *chan = rsb_map_get(&chans->roster.map, id);

	return chan && chan->kind == kind ? chan : NULL;
}

static bool
is_from_host(uint64_t id)
{
	return id % 4 == 0;
}

int
rsb_chans_new(const struct rsb_chan_ops *ops, void *arg, struct rsb_chans **ret_chans)
{
	struct rsb_chans *chans = rsb_new(struct rsb_chans);

	if (!chans)
		return -ENOMEM;
	chans->ops = ops;
	chans->arg = arg;
	rsb_roster_init(&chans->roster);
	rsb_list_init(&chans->ready);
	rsb_list_init(&chans->urgent);
	rsb_list_init(&chans->lazy);
	*ret_chans = chans;
	return 0;
}

void
rsb_chans_free(struct rsb_chans *chans)
{
	if (!chans)
		return;
	rsb_roster_done(&chans->roster);
	free(chans);
}

/* ---- the table ---- */

/* Takes an open channel out of the sums. */
static void
discount(struct rsb_chans *chans, const struct rsb_chan *chan)
{
	if (chan->kind == RSB_CHAN_SENDER)
		chans->in_flight -= chan->sender.sent - chan->sender.base;
	else
		chans->unsaid -= chan->receiver.received - chan->receiver.said_received;
}

static void
forget(struct rsb_chans *chans, struct rsb_chan *chan)
{
	discount(chans, chan);
	rsb_roster_forget(&chans->roster, chan);
}

int
rsb_chan_open_sender(struct rsb_chans *chans, uint64_t chan, size_t buffer_max)
{
	uint64_t credit = is_from_host(chan) ? 0 : RSB_CHAN_WINDOW;
	struct rsb_chan *c;
	int r;

	assert(buffer_max > 0);
	r = rsb_roster_open(&chans->roster, chan, RSB_CHAN_SENDER, &c);
	if (r < 0)
		return r;
	rsb_sender_init(&c->sender, buffer_max, credit, chans->attached);
	return 0;
}

static void
queue_credit(struct rsb_chans *chans, struct rsb_chan *chan)
{
	struct rsb_list *list = chan->receiver.urgent ? &chans->urgent : &chans->lazy;

	rsb_list_remove(&chan->link);
	if (chan->receiver.due && chans->attached)
		rsb_list_append(list, &chan->link);
}

int
rsb_chan_open_receiver(struct rsb_chans *chans, uint64_t chan, size_t window_max)
{
	struct rsb_chan *c;
	int r;

	r = rsb_roster_open(&chans->roster, chan, RSB_CHAN_RECEIVER, &c);
	if (r < 0)
		return r;
	rsb_receiver_init(&c->receiver, window_max);
	queue_credit(chans, c);
	return 0;
}

/* The request that makes the other end may still be under way. */
static bool
is_early(const struct rsb_chan *chan)
{
	if (chan->kind == RSB_CHAN_SENDER)
		return !chan->sender.known;
	return !is_from_host(chan->id) && rsb_receiver_received(&chan->receiver) == 0;
}

void
rsb_chan_close(struct rsb_chans *chans, uint64_t chan)
{
	rsb_chan_reset(chans, chan, -EPIPE);
}

void
rsb_chan_reset(struct rsb_chans *chans, uint64_t chan, int r)
{
	struct rsb_parting last = { .type = RSB_FRAME_RESET, .b = rsb_errmap_to_wire(r) };
	struct rsb_chan *c = rsb_map_get(&chans->roster.map, chan);
	bool said = false;

	assert(r != -ESTALE);
	if (!c || !rsb_chan_is_open(c))
		return;
	if (c->kind == RSB_CHAN_SENDER && c->sender.drained) {
		forget(chans, c);
		return;
	}
	last.early = is_early(c);
	/* There is nothing left to stop; the sender has to know that all arrived. */
	if (c->kind == RSB_CHAN_RECEIVER && c->receiver.fin) {
		last.type = RSB_FRAME_CREDIT;
		last.b = rsb_receiver_limit(&c->receiver);
		last.received = rsb_receiver_received(&c->receiver);
		said = chans->attached && !c->receiver.due;
	}
	discount(chans, c);
	rsb_roster_part(&chans->roster, c, &last, said);
}

/* ---- what the application does ---- */

/* At the end of the rotation, if it has something to send and is not in it. */
static void
queue_sender(struct rsb_chans *chans, struct rsb_chan *chan)
{
	if (chans->attached && rsb_list_empty(&chan->link) && rsb_sender_ready(&chan->sender))
		rsb_list_append(&chans->ready, &chan->link);
}

int
rsb_chan_write(struct rsb_chans *chans, uint64_t chan, struct rsb_bytes data)
{
	struct rsb_chan *c = find(chans, chan, RSB_CHAN_SENDER);
	int r;

	if (!c)
		return -EPIPE;
	r = rsb_sender_write(&c->sender, data);
	if (r < 0)
		return r;
	queue_sender(chans, c);
	return r;
}

size_t
rsb_chan_room(const struct rsb_chans *chans, uint64_t chan)
{
	const struct rsb_chan *c = find(chans, chan, RSB_CHAN_SENDER);

	return c ? rsb_sender_room(&c->sender) : 0;
}

int
rsb_chan_finish(struct rsb_chans *chans, uint64_t chan)
{
	struct rsb_chan *c = find(chans, chan, RSB_CHAN_SENDER);

	if (!c || c->sender.finished)
		return -EPIPE;
	rsb_sender_finish(&c->sender);
	queue_sender(chans, c);
	return 0;
}

bool
rsb_chan_drained(const struct rsb_chans *chans, uint64_t chan)
{
	const struct rsb_chan *c = find(chans, chan, RSB_CHAN_SENDER);

	return !c || c->sender.drained;
}

void
rsb_chan_consume(struct rsb_chans *chans, uint64_t chan, size_t size)
{
	struct rsb_chan *c = find(chans, chan, RSB_CHAN_RECEIVER);

	if (!c)
		return;
	rsb_receiver_consume(&c->receiver, size);
	queue_credit(chans, c);
}

uint64_t
rsb_chan_offset(const struct rsb_chans *chans, uint64_t chan)
{
	const struct rsb_chan *c = rsb_map_get(&chans->roster.map, chan);

	if (c && c->kind == RSB_CHAN_SENDER)
		return rsb_sender_written(&c->sender);
	return c && c->kind == RSB_CHAN_RECEIVER ? c->receiver.received : 0;
}

uint64_t
rsb_chan_unsent(const struct rsb_chans *chans, uint64_t chan)
{
	const struct rsb_chan *c = find(chans, chan, RSB_CHAN_SENDER);

	return c ? rsb_sender_written(&c->sender) - c->sender.sent : 0;
}

/* ---- connections ---- */

void
rsb_chans_attach(struct rsb_chans *chans)
{
	struct rsb_chan *chan;
	size_t cursor = 0;
	uint64_t id;

	rsb_chans_detach(chans);
	chans->attached = true;
	while ((chan = rsb_map_next(&chans->roster.map, &cursor, &id))) {
		if (chan->kind == RSB_CHAN_SENDER) {
			rsb_sender_attach(&chan->sender);
			queue_sender(chans, chan);
		} else if (chan->kind == RSB_CHAN_RECEIVER) {
			rsb_receiver_attach(&chan->receiver);
			queue_credit(chans, chan);
		}
	}
}

void
rsb_chans_detach(struct rsb_chans *chans)
{
	struct rsb_chan *chan;
	size_t cursor = 0;
	uint64_t id;

	chans->attached = false;
	chans->in_flight = 0;
	while ((chan = rsb_map_next(&chans->roster.map, &cursor, &id))) {
		if (!rsb_chan_is_open(chan))
			continue;
		rsb_list_remove(&chan->link);
		if (chan->kind == RSB_CHAN_SENDER)
			rsb_sender_detach(&chan->sender);
	}
	rsb_roster_detach(&chans->roster);
}

static int
input_stream(struct rsb_chans *chans, const struct rsb_frame *frame)
{
	struct rsb_chan *chan = rsb_map_get(&chans->roster.map, frame->a);
	uint64_t id = frame->a;
	int r;

	if (!chan)
		return rsb_roster_refuse(&chans->roster, id);
	if (!rsb_chan_is_open(chan)) {
		rsb_roster_repeat(&chans->roster, chan);
		return 0;
	}
	if (chan->kind != RSB_CHAN_RECEIVER)
		return -EBADMSG;
	r = rsb_receiver_input(&chan->receiver, frame);
	if (r <= 0)
		return r;
	chans->unsaid += frame->payload.size;
	queue_credit(chans, chan);
	/* The callback may close the channel. */
	chans->ops->data(chans->arg, id, frame->payload, frame->flags & RSB_FRAME_FIN);
	return 0;
}

static int
input_credit(struct rsb_chans *chans, const struct rsb_frame *frame)
{
	struct rsb_chan *chan = rsb_map_get(&chans->roster.map, frame->a);
	uint64_t received, delivered, id = frame->a;
	bool was_drained, was_waiting;
	int r;

	r = rsb_roster_read_credit(frame, &received);
	if (r < 0)
		return r;
	if (!chan) {
		/* Only a sender of the sidecar can still be to come; then nothing was received. */
		if (received == 0 && !is_from_host(id))
			return 0;
		return rsb_roster_refuse(&chans->roster, id);
	}
	if (!rsb_chan_is_open(chan)) {
		rsb_roster_repeat(&chans->roster, chan);
		return 0;
	}
	if (chan->kind != RSB_CHAN_SENDER)
		return -EBADMSG;
	was_drained = chan->sender.drained;
	was_waiting = chan->sender.waiting;
	chans->in_flight -= chan->sender.sent - chan->sender.base;
	r = rsb_sender_credit(&chan->sender, received, frame->b, &delivered);
	chans->in_flight += chan->sender.sent - chan->sender.base;
	if (r < 0)
		return r;
	/* What the connection before delivered says nothing about this one. */
	if (!was_waiting)
		chans->delivered += delivered;
	queue_sender(chans, chan);
	if (rsb_sender_take_starved(&chan->sender) || chan->sender.drained != was_drained)
		chans->ops->writable(chans->arg, id);
	return 0;
}

/* The peer does not know a channel that it must know; proto/chan.h tells why it must. */
static bool
is_rolled_back(const struct rsb_chan *chan, int error)
{
	if (error != -ESTALE)
		return false;
	return chan->kind == RSB_CHAN_RECEIVER || chan->sender.known;
}

static int
input_reset(struct rsb_chans *chans, const struct rsb_frame *frame)
{
	struct rsb_chan *chan = rsb_map_get(&chans->roster.map, frame->a);
	int error = rsb_errmap_from_wire(frame->b);
	uint64_t id = frame->a;

	if (frame->flags != 0 || frame->payload.size != 0)
		return -EBADMSG;
	if (!chan || chan->kind == RSB_CHAN_REFUSED)
		return 0;
	if (chan->kind == RSB_CHAN_RECEIVER && chan->receiver.fin)
		return 0;
	if (!rsb_chan_is_open(chan)) {
		/* Both ends gave it up. */
		rsb_roster_forget(&chans->roster, chan);
		return 0;
	}
	if (is_rolled_back(chan, error))
		return -ESTALE;
	forget(chans, chan);
	chans->ops->reset(chans->arg, id, error == -ESTALE ? -EPIPE : error);
	return 0;
}

int
rsb_chans_input(struct rsb_chans *chans, const struct rsb_frame *frame)
{
	if (!chans->attached)
		return -EBADMSG;
	switch (frame->type) {
	case RSB_FRAME_STREAM:
		return input_stream(chans, frame);
	case RSB_FRAME_CREDIT:
		return input_credit(chans, frame);
	case RSB_FRAME_RESET:
		return input_reset(chans, frame);
	default:
		return -EBADMSG;
	}
}

static void
output_credit(struct rsb_chans *chans, struct rsb_chan *chan, struct rsb_frame *ret_frame)
{
	struct rsb_receiver *receiver = &chan->receiver;

	rsb_roster_make_credit(&chans->roster, chan->id, rsb_receiver_limit(receiver),
		rsb_receiver_received(receiver), ret_frame);
	chans->unsaid -= receiver->received - receiver->said_received;
	rsb_receiver_said(receiver);
	rsb_list_remove(&chan->link);
}

/* One frame of the channel whose turn it is, which goes to the end of the rotation. */
static int
output_stream(struct rsb_chans *chans, struct rsb_frame *ret_frame)
{
	while (!rsb_list_empty(&chans->ready)) {
		struct rsb_chan *chan = chan_entry(chans->ready.next);

		rsb_list_remove(&chan->link);
		/* A CREDIT may have come before the question for it went out. */
		if (!rsb_sender_ready(&chan->sender))
			continue;
		*ret_frame = (struct rsb_frame){ .a = chan->id };
		rsb_sender_output(&chan->sender, ret_frame);
		chans->in_flight += ret_frame->payload.size;
		queue_sender(chans, chan);
		return 1;
	}
	return 0;
}

int
rsb_chans_output(struct rsb_chans *chans, enum rsb_chans_urge urge, size_t in_flight_max,
	struct rsb_frame *ret_frame)
{
	if (!chans->attached)
		return 0;
	if (rsb_roster_output(&chans->roster, ret_frame) > 0)
		return 1;
	if (!rsb_list_empty(&chans->urgent)) {
		output_credit(chans, chan_entry(chans->urgent.next), ret_frame);
		return 1;
	}
	/* Many channels with a little each fill the sender's allowance as well as one with much. */
	if (!rsb_list_empty(&chans->lazy) &&
		(urge == RSB_CHANS_CREDIT || chans->unsaid >= RSB_RECEIVER_STEP)) {
		output_credit(chans, chan_entry(chans->lazy.next), ret_frame);
		return 1;
	}
	if (urge == RSB_CHANS_STREAM && chans->in_flight < in_flight_max)
		return output_stream(chans, ret_frame);
	return 0;
}

bool
rsb_chans_credit_due(const struct rsb_chans *chans)
{
	return !rsb_list_empty(&chans->lazy);
}

uint64_t
rsb_chans_mark(const struct rsb_chans *chans)
{
	return chans->roster.mark;
}

size_t
rsb_chans_unsettled(const struct rsb_chans *chans)
{
	return chans->roster.n_parted;
}

void
rsb_chans_settle(struct rsb_chans *chans, uint64_t mark)
{
	rsb_roster_settle(&chans->roster, mark);
}

uint64_t
rsb_chans_delivered(const struct rsb_chans *chans)
{
	return chans->delivered;
}

uint64_t
rsb_chans_in_flight(const struct rsb_chans *chans)
{
	return chans->in_flight;
}
