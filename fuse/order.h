/* SPDX-License-Identifier: MIT */
#ifndef RSB_ORDER_H
#define RSB_ORDER_H

/*
 * One request about a command under way to the sandbox, of its client or our own; private to
 * fuse/relay.c, whose back() runs on the main thread when the reply is here.
 */

#include "fuse/procreq.h"
#include "fuse/relayed.h"

struct rsb_order {
	struct rsb_relayed *proc;
	struct rsb_list all;
	struct rsb_task task; /* to the main thread, with the reply */
	uint32_t op;
	uint64_t call;      /* the client's; 0: our own */
	struct rsb_buf req; /* encoded; its proc number is the client's */
	struct rsb_buf rep; /* encoded reply */
	int error;          /* of the call */
	bool runs;          /* spawn: it runs */
	bool held;          /* until its spawn was sent */
	bool replied;       /* set before the task is posted */
};

/* NULL without memory. */
struct rsb_order *rsb_order_new(struct rsb_relayed *proc, uint32_t op, uint64_t call);
void rsb_order_free(struct rsb_order *order);
/* It is done; its command's record goes when it was the last that named it. */
void rsb_order_end(struct rsb_order *order);
/*
 * Sends req with the far proc number; the reply comes to back(), also that it failed, which is
 * returned as well.
 */
int rsb_order_send(struct rsb_order *order, union rsb_procreq *req);
/* The client hears of it, if it is still there. */
void rsb_order_answer(struct rsb_order *order);

#endif
