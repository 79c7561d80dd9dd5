/* SPDX-License-Identifier: MIT */
#include "sidecar/dispatch.h"

#include <errno.h>
#include <stdlib.h>

#include "sidecar/journal.h"
#include "sidecar/request.h"
#include "sidecar/revival.h"
#include "sidecar/serve.h"
#include "sidecar/sess.h"
#include "sidecar/worker.h"

typedef void (*serve_fn)(struct rsb_request *rq);

/* clang-format off */
/*
 * The gate lets no LOCAL op through; the constant condition keeps the linker from asking for a
 * handler.
 */
#define OP(op, number, reqtype, reptype, since, flags) \
	static void \
	run_##op(struct rsb_request *rq) \
	{ \
		if (!((flags) & RSB_OP_LOCAL)) \
			rsb_serve_##op(rq, (const struct reqtype *)(const void *)rq->req); \
	}
#include "proto/ops.def"

#define OP(op, number, reqtype, reptype, since, flags) [number] = run_##op,
static const serve_fn serve[RSB_OP_NUMBER_MAX + 1] = {
#include "proto/ops.def"
};
/* clang-format on */

static bool
known(const struct rsb_sess *sess, uint32_t op)
{
	return op <= RSB_OP_NUMBER_MAX && rsb_ops[op].name && rsb_ops[op].since <= sess->version &&
	       !(rsb_ops[op].flags & RSB_OP_LOCAL);
}

void
rsb_dispatch_run(struct rsb_request *rq)
{
	const struct rsb_journal_call call = { .fifo = rq->fifo, .id = rq->id, .op = rq->op };

	if (rq->of_before) {
		int r = rsb_revival_recall(rq);

		if (r < 0)
			rsb_request_reply(rq, r, NULL);
		else
			rsb_request_reply_encoded(rq);
		return;
	}
	if (rq->fifo)
		rsb_journal_begin(rq->sess->part, &call);
	if (rq->bad < 0)
		rsb_request_reply(rq, rq->bad, NULL);
	else
		serve[rq->op](rq);
}

/* To the thread of its op. */
static void
route(struct rsb_request *rq)
{
	uint32_t flags = rsb_ops[rq->op].flags;
	int r;

	if (flags & RSB_OP_INLINE || rq->bad < 0) {
		rsb_dispatch_run(rq);
		return;
	}
	r = rsb_workers_push(rq->sess->pool, rq);
	if (r < 0)
		rsb_request_reply(rq, r, NULL);
}

/*
 * What the mutator gets is executed in the order of admission, so it need not wait for a number of
 * its own past; even what cannot be decoded goes there, or a later number would count as executed
 * too early. A handler that opens channels runs at once, so that bytes sent right behind the
 * request find them, and sees to "after" by itself.
 */
static void
admit(struct rsb_request *rq)
{
	struct rsb_sess *sess = rq->sess;
	int r;

	if (rq->of_before || rsb_ops[rq->op].flags & RSB_OP_ORDERED) {
		r = rsb_workers_push(sess->mutator, rq);
		if (r < 0)
			rsb_request_reply(rq, r, NULL);
	} else if (rsb_ops[rq->op].flags & RSB_OP_WRITES) {
		sess->fifo_seen = rq->fifo;
		r = rsb_workers_push(sess->mutator, rq);
		if (r < 0)
			rsb_request_reply(rq, r, NULL);
	} else if (rq->bad < 0 || rq->op == RSB_OP_spawn || rq->op == RSB_OP_tar_in ||
		   rq->op == RSB_OP_tree_out) {
		route(rq);
	} else {
		rsb_request_after(rq, route);
	}
}

/* 0: it is no mutation. */
static uint64_t
number_of(const struct rsb_sess *sess, const struct rsb_call_head *head, bool of_before)
{
	if (!known(sess, head->op) || !(rsb_ops[head->op].flags & RSB_OP_WRITES))
		return 0;
	/*
	 * after is the number before its own; more than were seen only from another process of the
	 * host, when calls were given up in between that will not come.
	 */
	return (of_before ? head->after : rsb_max(sess->fifo_seen, head->after)) + 1;
}

/*
 * Whether mutation number can have its slot of the journal, since no other in it has a reply that
 * may be asked for again. Replies arrive in the order of mutations.
 */
static bool
has_slot(struct rsb_sess *sess, uint64_t number)
{
	uint64_t arrived = rsb_stream_acked_mark(rsb_session_stream(sess->proto));

	/* Numbers may be left out, even more of them than there are slots. */
	if (arrived >= sess->kept_last)
		sess->kept_first = number;
	else
		sess->kept_first = rsb_max(sess->kept_first, arrived + 1);
	return !sess->part || number - sess->kept_first < RSB_JOURNAL_SLOTS;
}

/* 1: the next message was taken; 0: no space for it or its reply; negative: against the rules. */
static int
take(struct rsb_sess *sess, const struct rsb_msg *msg)
{
	struct rsb_stream *stream = rsb_session_stream(sess->proto);
	struct rsb_call_head head;
	struct rsb_request *rq;
	uint64_t number;
	bool of_before;
	size_t size;
	int r;

	r = rsb_codec_head((struct rsb_bytes){ .data = msg->data, .size = msg->size }, &head);
	if (r < 0)
		return r;
	if (head.op == 0 || head.id == 0 || head.after == UINT64_MAX)
		return -EBADMSG;
	if (rsb_sess_knows_call(sess, head.id)) {
		/* Only another process of the host can have forgotten that it called. */
		if (!sess->incarnation)
			return -EBADMSG;
		free(rsb_stream_take(stream));
		return 1;
	}
	of_before = known(sess, head.op) && rsb_revival_has(sess->revival, &head);
	number = number_of(sess, &head, of_before);
	/* Replies on their way will be acknowledged, and then this is looked at again. */
	if (number && !has_slot(sess, number) && !of_before)
		return 0;
	size = rsb_codec_reply_max(head.op);
	r = rsb_stream_reserve(stream, size);
	if (r < 0)
		return r == -EAGAIN ? 0 : r;

	r = rsb_request_new(sess, &head, size, &rq);
	if (r < 0) {
		rsb_stream_unreserve(stream, size);
		return r;
	}
	rq->msg = rsb_stream_take(stream);
	if (!known(sess, head.op)) {
		rsb_request_reply(rq, -EOPNOTSUPP, NULL);
		return 1;
	}
	if (rsb_codec_decode(rsb_ops[head.op].req, head.body, rq->req) < 0)
		rq->bad = -EBADMSG;
	rq->of_before = of_before;
	rq->number = number;
	rq->fifo = of_before ? 0 : number;
	sess->kept_last = rsb_max(sess->kept_last, number);
	admit(rq);
	return 1;
}

void
rsb_dispatch_pump(struct rsb_sess *sess)
{
	struct rsb_stream *stream = rsb_session_stream(sess->proto);
	const struct rsb_msg *msg;
	int r;

	while (!sess->ending && !sess->broken && (msg = rsb_stream_peek(stream))) {
		r = take(sess, msg);
		if (r < 0)
			rsb_sess_fail(sess, r);
		if (r <= 0)
			return;
	}
}

void
rsb_dispatch_executed(struct rsb_sess *sess, uint64_t fifo)
{
	struct rsb_list *pos, *tmp;

	sess->fifo_done = fifo;
	rsb_list_for_each_safe (pos, tmp, &sess->after) {
		struct rsb_request *rq = rsb_list_entry(pos, struct rsb_request, link);
		void (*go)(struct rsb_request *) = rq->go;

		if (rq->after > fifo)
			continue;
		rsb_list_remove(&rq->link);
		rq->go = NULL;
		go(rq);
	}
}
