/* SPDX-License-Identifier: MIT */
#include "proto/roster.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/errmap.h"
#include "proto/limits.h"

static struct rsb_chan *
chan_entry(struct rsb_list *node)
{
	return rsb_list_entry(node, struct rsb_chan, link);
}

void
rsb_roster_init(struct rsb_roster *roster)
{
	*roster = (struct rsb_roster){ 0 };
	/* As many may be refused as opened. */
	rsb_map_init(&roster->map, (size_t)2 * RSB_CHANS_MAX + RSB_ROSTER_EARLY_MAX);
	rsb_list_init(&roster->partings);
	rsb_list_init(&roster->parted);
	rsb_list_init(&roster->early);
}

void
rsb_roster_done(struct rsb_roster *roster)
{
	struct rsb_chan *chan;
	size_t cursor = 0;
	uint64_t id;

	while ((chan = rsb_map_next(&roster->map, &cursor, &id))) {
		if (chan->kind == RSB_CHAN_SENDER)
			rsb_sender_done(&chan->sender);
		free(chan);
	}
	rsb_map_done(&roster->map);
}

/* Moves it into, or (n = -1) out of, the number of its kind. */
static void
count(struct rsb_roster *roster, const struct rsb_chan *chan, int n)
{
	size_t one = (size_t)n;

	if (chan->kind == RSB_CHAN_REFUSED)
		return;
	if (chan->kind == RSB_CHAN_PARTED && chan->parting.early) {
		roster->n_early += one;
		return;
	}
	roster->n_ours += one;
	if (chan->kind == RSB_CHAN_PARTED)
		roster->n_parted += one;
}

static int
add(struct rsb_roster *roster, uint64_t id, enum rsb_chan_kind kind, struct rsb_chan **ret_chan)
{
	struct rsb_chan *chan;
	int r;

	chan = rsb_new(struct rsb_chan);
	if (!chan)
		return -ENOMEM;
	chan->id = id;
	chan->kind = kind;
	rsb_list_init(&chan->link);
	r = rsb_map_put(&roster->map, id, chan);
	if (r < 0) {
		free(chan);
		return r;
	}
	count(roster, chan, 1);
	*ret_chan = chan;
	return 0;
}

int
rsb_roster_open(
	struct rsb_roster *roster, uint64_t id, enum rsb_chan_kind kind, struct rsb_chan **ret_chan)
{
	if (rsb_map_get(&roster->map, id))
		return -EEXIST;
	if (roster->n_ours >= RSB_CHANS_MAX)
		return -EMFILE;
	return add(roster, id, kind, ret_chan);
}

void
rsb_roster_forget(struct rsb_roster *roster, struct rsb_chan *chan)
{
	rsb_list_remove(&chan->link);
	if (chan->kind == RSB_CHAN_SENDER)
		rsb_sender_done(&chan->sender);
	count(roster, chan, -1);
	(void)rsb_map_del(&roster->map, chan->id); /* it returns chan */
	free(chan);
}

void
rsb_roster_part(struct rsb_roster *roster, struct rsb_chan *chan, const struct rsb_parting *parting,
	bool said)
{
	rsb_list_remove(&chan->link);
	count(roster, chan, -1);
	if (chan->kind == RSB_CHAN_SENDER)
		rsb_sender_done(&chan->sender);
	chan->kind = RSB_CHAN_PARTED;
	chan->parting = *parting;
	count(roster, chan, 1);
	if (said)
		chan->parting.mark = ++roster->mark;
	rsb_list_append(said ? &roster->parted : &roster->partings, &chan->link);
}

void
rsb_roster_repeat(struct rsb_roster *roster, struct rsb_chan *chan)
{
	if (chan->kind != RSB_CHAN_PARTED || !chan->parting.early)
		return;
	count(roster, chan, -1);
	chan->parting.early = false;
	count(roster, chan, 1);
	rsb_list_remove(&chan->link);
	rsb_list_append(&roster->partings, &chan->link);
}

int
rsb_roster_refuse(struct rsb_roster *roster, uint64_t id)
{
	struct rsb_chan *chan;
	int r;

	if (roster->map.n - roster->n_ours - roster->n_early >= RSB_CHANS_MAX)
		return -EBADMSG;
	r = add(roster, id, RSB_CHAN_REFUSED, &chan);
	if (r < 0)
		return r;
	chan->parting = (struct rsb_parting){
		.type = RSB_FRAME_RESET,
		.b = rsb_errmap_to_wire(-ESTALE),
	};
	rsb_list_append(&roster->partings, &chan->link);
	return 0;
}

void
rsb_roster_make_credit(struct rsb_roster *roster, uint64_t id, uint64_t limit, uint64_t received,
	struct rsb_frame *ret_frame)
{
	size_t i;

	for (i = 0; i < sizeof(roster->received); i++)
		roster->received[i] = (uint8_t)(received >> (56 - 8 * i));
	*ret_frame = (struct rsb_frame){
		.type = RSB_FRAME_CREDIT,
		.a = id,
		.b = limit,
		.payload = { .data = roster->received, .size = sizeof(roster->received) },
	};
}

int
rsb_roster_read_credit(const struct rsb_frame *frame, uint64_t *ret_received)
{
	uint64_t received = 0;
	size_t i;

	if (frame->flags != 0 || frame->payload.size != 8)
		return -EBADMSG;
	for (i = 0; i < frame->payload.size; i++)
		received = received << 8 | frame->payload.data[i];
	*ret_received = received;
	return 0;
}

int
rsb_roster_output(struct rsb_roster *roster, struct rsb_frame *ret_frame)
{
	struct rsb_parting *last;
	struct rsb_chan *chan;

	if (rsb_list_empty(&roster->partings))
		return 0;
	chan = chan_entry(roster->partings.next);
	last = &chan->parting;
	if (last->type == RSB_FRAME_CREDIT)
		rsb_roster_make_credit(roster, chan->id, last->b, last->received, ret_frame);
	else
		*ret_frame = (struct rsb_frame){
			.type = RSB_FRAME_RESET,
			.a = chan->id,
			.b = last->b,
		};
	if (chan->kind == RSB_CHAN_REFUSED) {
		rsb_roster_forget(roster, chan);
		return 1;
	}
	rsb_list_remove(&chan->link);
	if (last->early) {
		rsb_list_append(&roster->early, &chan->link);
		if (roster->n_early > RSB_ROSTER_EARLY_MAX)
			rsb_roster_forget(roster, chan_entry(roster->early.next));
		return 1;
	}
	last->mark = ++roster->mark;
	rsb_list_append(&roster->parted, &chan->link);
	return 1;
}

void
rsb_roster_settle(struct rsb_roster *roster, uint64_t mark)
{
	while (!rsb_list_empty(&roster->parted)) {
		struct rsb_chan *chan = chan_entry(roster->parted.next);

		if (chan->parting.mark > mark)
			break;
		rsb_roster_forget(roster, chan);
	}
}

void
rsb_roster_detach(struct rsb_roster *roster)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, &roster->partings) {
		struct rsb_chan *chan = chan_entry(pos);

		if (chan->kind == RSB_CHAN_REFUSED)
			rsb_roster_forget(roster, chan);
	}
	rsb_list_for_each_safe (pos, tmp, &roster->parted) {
		rsb_list_remove(pos);
		rsb_list_append(&roster->partings, pos);
	}
	rsb_list_for_each_safe (pos, tmp, &roster->early) {
		rsb_list_remove(pos);
		rsb_list_append(&roster->partings, pos);
	}
}
