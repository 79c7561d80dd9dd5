/* SPDX-License-Identifier: MIT */
#ifndef RSB_INBOX_H
#define RSB_INBOX_H

/*
 * The receiving half of a numbered stream (proto/stream.h): puts messages together from their
 * frames, checks number and limit, and keeps them until they are taken. Lives inside struct
 * rsb_stream; the members are to be read, not written, outside of inbox.c.
 */

#include "proto/stream.h"

struct rsb_inbox {
	size_t window;
	struct rsb_msg *first; /* whole, not yet taken */
	struct rsb_msg **last;
	struct rsb_msg *partial; /* frames are missing; NULL between messages */
	size_t partial_cap;
	uint64_t received;
	uint64_t received_cost;
	uint64_t digest; /* of all received */
	uint64_t taken_cost;
};

void rsb_inbox_init(struct rsb_inbox *inbox, size_t window);
void rsb_inbox_done(struct rsb_inbox *inbox);

/* A MESSAGE frame. 1: it completed a message; 0: more to come; -EBADMSG, -ENOMEM. */
rsb_nodiscard int rsb_inbox_input(struct rsb_inbox *inbox, const struct rsb_frame *frame);
/* Drops what is half received: the peer begins it again on its next connection. */
void rsb_inbox_detach(struct rsb_inbox *inbox);
struct rsb_msg *rsb_inbox_take(struct rsb_inbox *inbox);

static inline uint64_t
rsb_inbox_limit(const struct rsb_inbox *inbox)
{
	return inbox->taken_cost + inbox->window;
}

/* What a message of that size counts. */
static inline size_t
rsb_message_cost(size_t size)
{
	return size + RSB_STREAM_COST;
}

/* The digest of a history of messages, which starts as RSB_DIGEST_SEED and is never 0. */
#define RSB_DIGEST_SEED UINT64_C(0xcbf29ce484222325)
uint64_t rsb_digest_add(uint64_t digest, struct rsb_bytes msg);

#endif
