/* SPDX-License-Identifier: MIT */
#include "proto/inbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

/*
 * How much of a message goes into the digest besides its size: enough for op, call and the first
 * fields, so that another order or another answer shows, at a price that bulk data does not feel.
 */
#define DIGEST_HEAD ((size_t)64)
#define DIGEST_PRIME UINT64_C(0x100000001b3)

/* FNV-1a; 0 means "not said". */
uint64_t
rsb_digest_add(uint64_t digest, struct rsb_bytes msg)
{
	size_t n = rsb_min(msg.size, DIGEST_HEAD), i;

	digest = (digest ^ msg.size) * DIGEST_PRIME;
	for (i = 0; i < n; i++)
		digest = (digest ^ msg.data[i]) * DIGEST_PRIME;
	return digest != 0 ? digest : RSB_DIGEST_SEED;
}

void
rsb_inbox_init(struct rsb_inbox *inbox, size_t window)
{
	*inbox = (struct rsb_inbox){
		.window = window,
		.last = &inbox->first,
		.digest = RSB_DIGEST_SEED,
	};
}

void
rsb_inbox_done(struct rsb_inbox *inbox)
{
	struct rsb_msg *msg;

	while ((msg = rsb_inbox_take(inbox)))
		free(msg);
	rsb_inbox_detach(inbox);
}

/* Exact for the usual message of one frame, doubling for the others. */
static int
grow(struct rsb_inbox *inbox, size_t size, bool more)
{
	struct rsb_msg *partial;
	size_t cap = size;

	if (inbox->partial && size <= inbox->partial_cap)
		return 0;
	if (inbox->partial || more)
		cap = rsb_min(rsb_max(size, inbox->partial_cap * 2), (size_t)RSB_MESSAGE_MAX);
	partial = realloc(inbox->partial, sizeof(*partial) + cap);
	if (!partial)
		return -ENOMEM;
	inbox->partial = partial;
	inbox->partial_cap = cap;
	return 0;
}

/* Memory has to follow what the window counts; a failure to shrink is none. */
static struct rsb_msg *
shrink(struct rsb_msg *msg, size_t cap)
{
	struct rsb_msg *smaller = NULL;

	if (cap - msg->size > RSB_FRAME_MAX)
		smaller = realloc(msg, sizeof(*msg) + msg->size);
	return smaller ? smaller : msg;
}

static void
complete(struct rsb_inbox *inbox)
{
	struct rsb_msg *msg = shrink(inbox->partial, inbox->partial_cap);

	inbox->partial = NULL;
	inbox->partial_cap = 0;
	msg->next = NULL;
	*inbox->last = msg;
	inbox->last = &msg->next;
	inbox->received++;
	inbox->received_cost += rsb_message_cost(msg->size);
	inbox->digest = rsb_digest_add(
		inbox->digest, (struct rsb_bytes){ .data = msg->data, .size = msg->size });
}

int
rsb_inbox_input(struct rsb_inbox *inbox, const struct rsb_frame *frame)
{
	bool more = frame->flags & RSB_FRAME_MORE, begins = !inbox->partial;
	size_t had = begins ? 0 : inbox->partial->size, size = frame->payload.size;
	int r;

	if ((frame->flags & ~RSB_FRAME_MORE) || frame->b != 0 || frame->a != inbox->received + 1)
		return -EBADMSG;
	/* Parts without bytes would go on for ever and never reach a maximum. */
	if ((more || !begins) && size == 0)
		return -EBADMSG;
	if (begins && inbox->received_cost >= rsb_inbox_limit(inbox))
		return -EBADMSG;
	if (size > RSB_MESSAGE_MAX - had)
		return -EBADMSG;
	r = grow(inbox, had + size, more);
	if (r < 0)
		return r;
	if (size > 0)
		memcpy(inbox->partial->data + had, frame->payload.data, size);
	inbox->partial->size = had + size;
	if (more)
		return 0;
	complete(inbox);
	return 1;
}

void
rsb_inbox_detach(struct rsb_inbox *inbox)
{
	free(inbox->partial);
	inbox->partial = NULL;
	inbox->partial_cap = 0;
}

struct rsb_msg *
rsb_inbox_take(struct rsb_inbox *inbox)
{
	struct rsb_msg *msg = inbox->first;

	if (!msg)
		return NULL;
	inbox->first = msg->next;
	if (!inbox->first)
		inbox->last = &inbox->first;
	msg->next = NULL;
	inbox->taken_cost += rsb_message_cost(msg->size);
	return msg;
}
