/* SPDX-License-Identifier: MIT */
#ifndef RSB_OUTBOX_H
#define RSB_OUTBOX_H

/*
 * What other threads leave for the io thread: messages and what is to be done with byte
 * streams, in the order in which they were left, and for each open stream a mirror of the
 * room that its sender has. So nobody but the io thread touches the session, and nobody waits
 * for it.
 *
 * No lock inside: the link's is held around every call here. rsb_outbox_apply() is the
 * exception: it works on what was taken out.
 *
 * Invariant: the bytes of a stream that are queued here and not yet in the session never
 * exceed the room that the session had when it was last looked at, so the session takes all
 * of them.
 */

#include "proto/limits.h"
#include "proto/session.h"
#include "util/list.h"

struct rsb_outbox {
	struct rsb_list items;
	size_t size;  /* bytes of messages in items */
	size_t space; /* what the session would take; the io thread says so */
	struct rsb_map lanes;
	struct rsb_list busy; /* lanes that the io thread must look at */
};

void rsb_outbox_init(struct rsb_outbox *outbox, size_t space);
void rsb_outbox_done(struct rsb_outbox *outbox);

/* ---- any thread ---- */

/* Copies msg. -EAGAIN: no space now; -ENOMEM. */
rsb_nodiscard int rsb_outbox_message(
	struct rsb_outbox *outbox, enum rsb_class class, struct rsb_bytes msg);
/* limit: buffer_max of a sender, window_max of a receiver. -EEXIST, -EMFILE, -ENOMEM. */
rsb_nodiscard int rsb_outbox_open(
	struct rsb_outbox *outbox, uint64_t chan, bool sender, size_t limit);
/* As rsb_chan_write(): bytes taken. */
rsb_nodiscard int rsb_outbox_write(struct rsb_outbox *outbox, uint64_t chan, struct rsb_bytes data);
rsb_nodiscard int rsb_outbox_finish(struct rsb_outbox *outbox, uint64_t chan);
void rsb_outbox_consume(struct rsb_outbox *outbox, uint64_t chan, size_t size);
/* r: 0 forgets the stream, else the peer is told. Needs no memory. */
void rsb_outbox_close(struct rsb_outbox *outbox, uint64_t chan, int r);

/* As rsb_stream_edit(), for the messages that are still here. */
void rsb_outbox_edit(struct rsb_outbox *outbox, rsb_stream_edit_fn fn, void *arg);

/* ---- the io thread ---- */

/* Moves all items to the end of list. */
void rsb_outbox_take(struct rsb_outbox *outbox, struct rsb_list *list);
/*
 * Without the lock: hands items to the session and to done, up to the first that it has no
 * space for now. Another error than that: the session cannot go on.
 */
rsb_nodiscard int rsb_outbox_apply(
	struct rsb_session *session, struct rsb_list *items, struct rsb_list *done);
/* Accounts for done and frees it; what is left in items comes back to the front. */
void rsb_outbox_settle(struct rsb_outbox *outbox, struct rsb_list *items, struct rsb_list *done);
/*
 * Gives consumption on and looks at the room of senders. Up to n_max streams that may go on
 * writing after a short write are put into ret_writable; returns their number.
 */
size_t rsb_outbox_refresh(struct rsb_outbox *outbox, struct rsb_session *session,
	uint64_t *ret_writable, size_t n_max);
/* The peer reset it. */
void rsb_outbox_forget(struct rsb_outbox *outbox, uint64_t chan);
/*
 * The session ends: drops all items and moves the open streams out to lanes, where
 * rsb_outbox_next_cut(), without the lock, names and frees one after the other (false: that
 * was all).
 */
void rsb_outbox_cut(struct rsb_outbox *outbox, struct rsb_map *ret_lanes);
bool rsb_outbox_next_cut(struct rsb_map *lanes, uint64_t *ret_chan);

#endif
