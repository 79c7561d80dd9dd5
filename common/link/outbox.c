/* SPDX-License-Identifier: MIT */
#include "link/outbox.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum kind { MESSAGE, OPEN_SENDER, OPEN_RECEIVER, WRITE, FINISH, CLOSE };

struct item {
	struct rsb_list node;
	enum kind kind;
	enum rsb_class class; /* of a message */
	uint64_t chan;
	size_t limit; /* of an open */
	int r;        /* of a close */
	size_t size;
	uint8_t data[];
};

struct lane {
	struct rsb_list busy; /* linked while the io thread has to look at it */
	uint64_t chan;
	bool sender;
	bool finished;
	bool short_write;
	size_t limit;
	size_t room;        /* of the session, when it was last looked at */
	size_t queued;      /* bytes in items */
	size_t consumed;    /* not yet told to the session */
	struct item *close; /* made at the start, so that closing cannot fail */
};

void
rsb_outbox_init(struct rsb_outbox *outbox, size_t space)
{
	*outbox = (struct rsb_outbox){ .space = space };
	rsb_list_init(&outbox->items);
	rsb_list_init(&outbox->busy);
	rsb_map_init(&outbox->lanes, RSB_CHANS_MAX);
}

void
rsb_outbox_done(struct rsb_outbox *outbox)
{
	struct rsb_map lanes;
	uint64_t chan;

	rsb_outbox_cut(outbox, &lanes);
	while (rsb_outbox_next_cut(&lanes, &chan))
		;
	rsb_map_done(&outbox->lanes);
}

static struct item *
make_item(enum kind kind, uint64_t chan, struct rsb_bytes data)
{
	struct item *item = malloc(sizeof(*item) + data.size);

	if (!item)
		return NULL;
	*item = (struct item){ .kind = kind, .chan = chan, .size = data.size };
	rsb_list_init(&item->node);
	if (data.size)
		memcpy(item->data, data.data, data.size);
	return item;
}

static struct item *
add_item(struct rsb_outbox *outbox, enum kind kind, uint64_t chan, struct rsb_bytes data)
{
	struct item *item = make_item(kind, chan, data);

	if (item)
		rsb_list_append(&outbox->items, &item->node);
	return item;
}

static void
lane_free(struct lane *lane)
{
	rsb_list_remove(&lane->busy);
	free(lane->close);
	free(lane);
}
RSB_DEFINE_CLEANUP(struct lane *, lane_free)

int
rsb_outbox_message(struct rsb_outbox *outbox, enum rsb_class class, struct rsb_bytes msg)
{
	struct item *item;

	if (msg.size > outbox->space || outbox->size > outbox->space - msg.size)
		return -EAGAIN;
	item = add_item(outbox, MESSAGE, 0, msg);
	if (!item)
		return -ENOMEM;
	item->class = class;
	outbox->size += msg.size;
	return 0;
}

static void
mark_busy(struct rsb_outbox *outbox, struct lane *lane)
{
	if (rsb_list_empty(&lane->busy))
		rsb_list_append(&outbox->busy, &lane->busy);
}

int
rsb_outbox_open(struct rsb_outbox *outbox, uint64_t chan, bool sender, size_t limit)
{
	RSB_CLEANUP(lane_freep) struct lane *lane = NULL;
	struct item *item;
	int r;

	if (rsb_map_get(&outbox->lanes, chan))
		return -EEXIST;
	lane = rsb_new(struct lane);
	if (!lane)
		return -ENOMEM;
	rsb_list_init(&lane->busy);
	lane->close = make_item(CLOSE, chan, (struct rsb_bytes){ 0 });
	if (!lane->close)
		return -ENOMEM;
	lane->chan = chan;
	lane->sender = sender;
	lane->limit = sender ? limit : 0;
	lane->room = lane->limit;
	r = rsb_map_put(&outbox->lanes, chan, lane);
	if (r < 0)
		return r == -ENOSPC ? -EMFILE : r;
	item = add_item(
		outbox, sender ? OPEN_SENDER : OPEN_RECEIVER, chan, (struct rsb_bytes){ 0 });
	if (!item) {
		(void)rsb_map_del(&outbox->lanes, chan); /* it is lane */
		return -ENOMEM;
	}
	item->limit = limit;
	(void)rsb_steal(&lane); /* the map's */
	return 0;
}

int
rsb_outbox_write(struct rsb_outbox *outbox, uint64_t chan, struct rsb_bytes data)
{
	struct lane *lane = rsb_map_get(&outbox->lanes, chan);
	size_t room;

	if (!lane || !lane->sender || lane->finished)
		return -EPIPE;
	room = lane->room > lane->queued ? lane->room - lane->queued : 0;
	if (data.size > room) {
		data.size = room;
		lane->short_write = true;
		mark_busy(outbox, lane);
	}
	if (data.size == 0)
		return 0;
	if (!add_item(outbox, WRITE, chan, data))
		return -ENOMEM;
	lane->queued += data.size;
	mark_busy(outbox, lane);
	return (int)data.size;
}

int
rsb_outbox_finish(struct rsb_outbox *outbox, uint64_t chan)
{
	struct lane *lane = rsb_map_get(&outbox->lanes, chan);

	if (!lane || !lane->sender || lane->finished)
		return -EPIPE;
	if (!add_item(outbox, FINISH, chan, (struct rsb_bytes){ 0 }))
		return -ENOMEM;
	lane->finished = true;
	return 0;
}

void
rsb_outbox_consume(struct rsb_outbox *outbox, uint64_t chan, size_t size)
{
	struct lane *lane = rsb_map_get(&outbox->lanes, chan);

	if (!lane)
		return;
	lane->consumed += size;
	mark_busy(outbox, lane);
}

void
rsb_outbox_forget(struct rsb_outbox *outbox, uint64_t chan)
{
	struct lane *lane = rsb_map_del(&outbox->lanes, chan);

	if (lane)
		lane_free(lane);
}

void
rsb_outbox_close(struct rsb_outbox *outbox, uint64_t chan, int r)
{
	struct lane *lane = rsb_map_get(&outbox->lanes, chan);
	struct item *item;

	if (!lane)
		return;
	item = rsb_steal(&lane->close);
	item->r = r;
	rsb_list_append(&outbox->items, &item->node);
	rsb_outbox_forget(outbox, chan);
}

static void
splice(struct rsb_list *to, struct rsb_list *from)
{
	if (rsb_list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	rsb_list_init(from);
}

void
rsb_outbox_take(struct rsb_outbox *outbox, struct rsb_list *list)
{
	splice(list, &outbox->items);
}

void
rsb_outbox_edit(struct rsb_outbox *outbox, rsb_stream_edit_fn fn, void *arg)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, &outbox->items) {
		struct item *item = rsb_list_entry(pos, struct item, node);
		size_t size;

		if (item->kind != MESSAGE)
			continue;
		size = fn(arg, item->data, item->size);
		assert(size <= item->size);
		outbox->size -= item->size - size;
		item->size = size;
		if (size > 0)
			continue;
		rsb_list_remove(&item->node);
		free(item);
	}
}

static int
apply_chan(struct rsb_chans *chans, const struct item *item)
{
	const struct rsb_bytes data = { .data = item->data, .size = item->size };

	switch (item->kind) {
	case OPEN_SENDER:
		return rsb_chan_open_sender(chans, item->chan, item->limit);
	case OPEN_RECEIVER:
		return rsb_chan_open_receiver(chans, item->chan, item->limit);
	case WRITE:
		return rsb_chan_write(chans, item->chan, data);
	case FINISH:
		return rsb_chan_finish(chans, item->chan);
	case CLOSE:
		if (item->r < 0)
			rsb_chan_reset(chans, item->chan, item->r);
		else
			rsb_chan_close(chans, item->chan);
		return 0;
	case MESSAGE:
		break;
	}
	return -EINVAL;
}

static int
apply(struct rsb_session *session, const struct item *item)
{
	const struct rsb_bytes data = { .data = item->data, .size = item->size };
	int r;

	if (item->kind == MESSAGE)
		return rsb_stream_send(rsb_session_stream(session), item->class, data);
	r = apply_chan(rsb_session_chans(session), item);
	/* the invariant of outbox.h */
	assert(item->kind != WRITE || r < 0 || (size_t)r == item->size);
	/* EPIPE: the peer reset it meanwhile, and its owner knows */
	return r == -EPIPE || r > 0 ? 0 : r;
}

int
rsb_outbox_apply(struct rsb_session *session, struct rsb_list *items, struct rsb_list *done)
{
	struct item *item;
	int r;

	while (!rsb_list_empty(items)) {
		item = rsb_list_entry(items->next, struct item, node);
		r = apply(session, item);
		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		rsb_list_remove(&item->node);
		rsb_list_append(done, &item->node);
	}
	return 0;
}

void
rsb_outbox_settle(struct rsb_outbox *outbox, struct rsb_list *items, struct rsb_list *done)
{
	struct rsb_list *pos, *tmp;
	struct item *item;
	struct lane *lane;

	splice(items, &outbox->items);
	splice(&outbox->items, items);
	rsb_list_for_each_safe (pos, tmp, done) {
		item = rsb_list_entry(pos, struct item, node);
		lane = item->kind == WRITE ? rsb_map_get(&outbox->lanes, item->chan) : NULL;
		if (lane)
			lane->queued -= item->size;
		if (item->kind == MESSAGE)
			outbox->size -= item->size;
		free(item);
	}
	rsb_list_init(done);
}

/* Whether its owner can be told to go on. */
static bool
look(struct lane *lane, struct rsb_chans *chans)
{
	if (lane->consumed)
		rsb_chan_consume(chans, lane->chan, lane->consumed);
	lane->consumed = 0;
	if (!lane->sender)
		return false;
	lane->room = rsb_chan_room(chans, lane->chan);
	if (!lane->short_write || lane->room <= lane->queued)
		return false;
	lane->short_write = false;
	return true;
}

size_t
rsb_outbox_refresh(struct rsb_outbox *outbox, struct rsb_session *session, uint64_t *ret_writable,
	size_t n_max)
{
	struct rsb_chans *chans = rsb_session_chans(session);
	struct rsb_list *pos, *tmp;
	struct lane *lane;
	size_t n = 0;

	outbox->space = rsb_stream_space(rsb_session_stream(session));
	rsb_list_for_each_safe (pos, tmp, &outbox->busy) {
		if (n == n_max)
			break;
		lane = rsb_list_entry(pos, struct lane, busy);
		if (look(lane, chans))
			ret_writable[n++] = lane->chan;
		/* a sender with bytes under way will have more room later */
		if (!lane->short_write && lane->queued == 0 && lane->room >= lane->limit)
			rsb_list_remove(&lane->busy);
	}
	return n;
}

void
rsb_outbox_cut(struct rsb_outbox *outbox, struct rsb_map *ret_lanes)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, &outbox->items)
		free(rsb_list_entry(pos, struct item, node));
	rsb_list_init(&outbox->items);
	rsb_list_for_each_safe (pos, tmp, &outbox->busy)
		rsb_list_remove(pos);
	outbox->size = 0;
	*ret_lanes = outbox->lanes;
	rsb_map_init(&outbox->lanes, RSB_CHANS_MAX);
}

bool
rsb_outbox_next_cut(struct rsb_map *lanes, uint64_t *ret_chan)
{
	size_t cursor = 0;

	if (!rsb_map_next(lanes, &cursor, ret_chan)) {
		rsb_map_done(lanes);
		return false;
	}
	lane_free(rsb_map_del(lanes, *ret_chan));
	return true;
}
