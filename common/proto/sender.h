/* SPDX-License-Identifier: MIT */
#ifndef RSB_SENDER_H
#define RSB_SENDER_H

/*
 * The sending end of one byte stream (proto/chan.h): what was written and is not yet received over
 * there, and where the receiver's credit ends. Its owner reads the members, never writes them.
 */

#include <stdbool.h>

#include "proto/frame.h"

/*
 * buf holds the bytes from base on. base <= sent <= high <= base + length of buf; sent is where
 * this connection is, high where any connection was. waiting: sent is base and nothing may go out,
 * because only the receiver knows what it got from the connection before.
 */
struct rsb_sender {
	struct rsb_buf buf;
	uint64_t base;
	uint64_t sent;
	uint64_t high;
	uint64_t limit;
	bool known;    /* there is, or was, a receiver */
	bool waiting;  /* for the first CREDIT of this connection */
	bool probe;    /* an empty frame is to ask for it */
	bool finished; /* nothing more will be written */
	bool fin_sent; /* on this connection */
	bool fin_high; /* on any */
	bool drained;
	bool starved; /* a write was cut short */
};

/* credit: what may be sent before the receiver is heard of; 0: wait for it. */
void rsb_sender_init(struct rsb_sender *sender, size_t buffer_max, uint64_t credit, bool attached);
void rsb_sender_done(struct rsb_sender *sender);

/* Bytes taken; -EPIPE after finish, -ENOMEM. */
rsb_nodiscard int rsb_sender_write(struct rsb_sender *sender, struct rsb_bytes data);
void rsb_sender_finish(struct rsb_sender *sender);
size_t rsb_sender_room(const struct rsb_sender *sender);
static inline uint64_t
rsb_sender_written(const struct rsb_sender *sender)
{
	return sender->base + rsb_buf_len(&sender->buf);
}

void rsb_sender_attach(struct rsb_sender *sender);
void rsb_sender_detach(struct rsb_sender *sender);
/* Something could go out now. */
bool rsb_sender_ready(const struct rsb_sender *sender);
/* That something; the payload views buf until the next call. */
void rsb_sender_output(struct rsb_sender *sender, struct rsb_frame *ret_frame);
/*
 * A CREDIT: returns 0 and how many bytes it says were received since the last one. -ESTALE: where
 * the receiver says it is, on a new connection, is not in our history; -EBADMSG.
 */
rsb_nodiscard int rsb_sender_credit(
	struct rsb_sender *sender, uint64_t received, uint64_t limit, uint64_t *ret_delivered);
/* A write was cut short and there is room since; said once. */
bool rsb_sender_take_starved(struct rsb_sender *sender);

#endif
