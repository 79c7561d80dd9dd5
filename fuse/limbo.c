/* SPDX-License-Identifier: MIT */
#include "fuse/limbo.h"

#include <errno.h>
#include <stdlib.h>

#include "fuse/fs.h"
#include "fuse/sending.h"
#include "util/cleanup.h"

static struct rsb_sending *
entry(struct rsb_list *pos)
{
	return rsb_list_entry(pos, struct rsb_sending, parked);
}

static bool
writes(const struct rsb_sending *call)
{
	return rsb_ops[call->op].flags & RSB_OP_WRITES;
}

void
rsb_limbo_put(struct rsb_sending *call)
{
	call->in_limbo = true;
	rsb_list_append(&call->send->limbo, &call->parked);
}

/* Mutations in their order, then the others. */
static int
by_turn(const void *a, const void *b)
{
	const struct rsb_sending *x = *(const struct rsb_sending *const *)a;
	const struct rsb_sending *y = *(const struct rsb_sending *const *)b;

	if (writes(x) != writes(y))
		return writes(x) ? -1 : 1;
	if (x->shared->fifo != y->shared->fifo)
		return x->shared->fifo < y->shared->fifo ? -1 : 1;
	return x->shared->call < y->shared->call ? -1 : x->shared->call > y->shared->call;
}

int
rsb_limbo_sort(struct rsb_send *send)
{
	rsb_autofree struct rsb_sending **calls = NULL;
	struct rsb_list *pos;
	size_t n = 0, i = 0;

	rsb_list_for_each (pos, &send->limbo)
		n++;
	if (n == 0)
		return 0;
	calls = rsb_new_array(struct rsb_sending *, n);
	if (!calls)
		return -ENOMEM;
	rsb_list_for_each (pos, &send->limbo)
		calls[i++] = entry(pos);
	qsort(calls, n, sizeof(struct rsb_sending *), by_turn);
	rsb_list_init(&send->limbo);
	for (i = 0; i < n; i++) {
		rsb_list_init(&calls[i]->parked);
		rsb_list_append(&send->limbo, &calls[i]->parked);
	}
	return 0;
}

static void
leave(struct rsb_sending *call)
{
	rsb_list_remove(&call->parked);
	call->in_limbo = false;
}

void
rsb_limbo_give_up(struct rsb_sending *call, int r)
{
	leave(call);
	rsb_sending_end(call, writes(call) ? -ENOTCONN : r, NULL);
}

uint32_t
rsb_limbo_answer(struct rsb_send *send, const struct rsb_call_head *head)
{
	union rsb_sending_msg rep;
	struct rsb_list *pos;

	rsb_list_for_each (pos, &send->limbo) {
		struct rsb_sending *call = entry(pos);
		const struct rsb_message_desc *desc = rsb_ops[call->op].rep;
		uint32_t op = call->op;
		int r = head->error;

		if (call->shared->call != head->id)
			continue;
		if (r == 0)
			r = desc->size <= sizeof(rep) ? rsb_codec_decode(desc, head->body, &rep)
						      : -EMSGSIZE;
		leave(call);
		rsb_sending_end(call, r < 0 ? r : 0, r < 0 ? NULL : &rep);
		return op;
	}
	return 0;
}

/* 1: it is on its way, or has ended; 0: there is no room. */
static int
send_again(struct rsb_sending *call)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = RSB_MESSAGE_MAX };
	union rsb_sending_msg req;
	int r;

	r = call->cancelled ? -EINTR : rsb_sending_decode(call, &buf, &req);
	if (r >= 0)
		r = rsb_sending_hand_over(call, &req, RSB_SENDING_AGAIN | RSB_SENDING_FIRST);
	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		rsb_limbo_give_up(call, r);
	else
		leave(call);
	return 1;
}

int
rsb_limbo_mutations(struct rsb_send *send, uint64_t fifo)
{
	while (!rsb_list_empty(&send->limbo)) {
		struct rsb_sending *call = entry(send->limbo.next);

		if (!writes(call) || call->shared->fifo > fifo)
			break;
		if (send_again(call) == 0)
			return 0;
	}
	return 1;
}

int
rsb_limbo_others(struct rsb_send *send)
{
	while (!rsb_list_empty(&send->limbo)) {
		if (send_again(entry(send->limbo.next)) == 0)
			return 0;
	}
	return 1;
}

void
rsb_limbo_end(struct rsb_send *send, int r)
{
	while (!rsb_list_empty(&send->limbo))
		rsb_limbo_give_up(entry(send->limbo.next), r);
}

void
rsb_limbo_end_unentered(struct rsb_send *send)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	rsb_list_for_each_safe (pos, tmp, &send->parked) {
		struct rsb_sending *call = rsb_list_entry(pos, struct rsb_sending, parked);

		if (call->shared)
			continue;
		rsb_list_remove(&call->parked);
		send->n_parked--;
		rsb_sending_end(call, -ERESTART, NULL);
	}
	rsb_send_drop_forgets(send);
}
