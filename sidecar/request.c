/* SPDX-License-Identifier: MIT */
#include "sidecar/request.h"

#include <errno.h>
#include <stdlib.h>

#include "sidecar/dispatch.h"
#include "sidecar/journal.h"
#include "sidecar/sess.h"
#include "util/cleanup.h"

/* A reply without a body always fits in here, so that saying "no memory" needs none. */
#define REPLY_BARE_MAX 64u

static void
free_request(struct rsb_request *rq)
{
	rsb_buf_done(&rq->reply);
	free(rq->msg);
	free(rq);
}

static enum rsb_class
class_of(const struct rsb_request *rq)
{
	return rq->fifo || rq->of_before ? RSB_CLASS_FIFO : RSB_CLASS_READ;
}

/* On the io thread: the reply goes to the stream, and the request is over. */
static void
finish(struct rsb_task *task)
{
	struct rsb_request *rq = rsb_container_of(task, struct rsb_request, task);
	struct rsb_sess *sess = rq->sess;
	struct rsb_stream *stream = rsb_session_stream(sess->proto);
	uint64_t fifo = rq->fifo;
	int r;

	r = rsb_stream_send_reserved(
		stream, class_of(rq), rsb_buf_view(&rq->reply), rq->reserved, rq->number);
	(void)rsb_map_del(&sess->calls, rq->id); /* it is this one */
	free_request(rq);
	if (r < 0)
		rsb_sess_fail(sess, r);
	if (fifo)
		rsb_dispatch_executed(sess, fifo);
	if (sess->ending) {
		rsb_sess_check_end(sess);
		return;
	}
	rsb_sess_kick(sess);
	rsb_dispatch_pump(sess); /* what the reply did not need of its reservation is free again */
}

int
rsb_request_new(struct rsb_sess *sess, const struct rsb_call_head *head, size_t reserved,
	struct rsb_request **ret_rq)
{
	const struct rsb_message_desc *desc =
		head->op <= RSB_OP_NUMBER_MAX ? rsb_ops[head->op].req : NULL;
	struct rsb_request *rq = calloc(1, sizeof(*rq) + (desc ? desc->size : 0));
	uint8_t *tail;
	int r;

	if (!rq)
		return -ENOMEM;
	rsb_buf_init(&rq->reply, RSB_MESSAGE_MAX);
	r = rsb_buf_reserve(&rq->reply, REPLY_BARE_MAX, &tail);
	if (r == 0)
		r = rsb_map_put(&sess->calls, head->id, rq);
	if (r < 0) {
		free_request(rq);
		return r;
	}
	rq->sess = sess;
	rq->op = head->op;
	rq->version = sess->version;
	rq->id = head->id;
	rq->after = head->after;
	rq->body = head->body;
	rq->reserved = reserved;
	rq->task.fn = finish;
	rsb_list_init(&rq->link);
	*ret_rq = rq;
	return 0;
}

void
rsb_request_reply(struct rsb_request *rq, int error, const void *rep)
{
	int r;

	rsb_buf_clear(&rq->reply);
	r = rsb_codec_reply(rq->op, rq->id, error, rep, rq->version, &rq->reply);
	if (r == 0 && rsb_buf_len(&rq->reply) > rq->reserved)
		r = -EIO;
	if (r < 0) {
		rsb_buf_clear(&rq->reply);
		/* Fits into what was allocated at the start: cannot fail. */
		(void)rsb_codec_reply(rq->op, rq->id, r, NULL, rq->version, &rq->reply);
	}
	if (rq->fifo)
		rsb_journal_end(rq->sess->part, rq->fifo, rsb_buf_view(&rq->reply));
	rsb_loop_post(rq->sess->loop, &rq->task);
}

void
rsb_request_reply_encoded(struct rsb_request *rq)
{
	rsb_loop_post(rq->sess->loop, &rq->task);
}

int
rsb_request_waits(struct rsb_request *rq, void (*cancel)(struct rsb_request *rq))
{
	bool cancelled;

	rsb_mutex_lock(&rq->sess->lock);
	cancelled = rq->cancelled;
	if (!cancelled)
		rq->cancel = cancel;
	rsb_mutex_unlock(&rq->sess->lock);
	return cancelled ? -EINTR : 0;
}

void
rsb_request_after(struct rsb_request *rq, void (*go)(struct rsb_request *rq))
{
	if (rq->after <= rq->sess->fifo_done) {
		go(rq);
		return;
	}
	rq->go = go;
	rsb_list_append(&rq->sess->after, &rq->link);
}

void
rsb_request_cancel(struct rsb_request *rq)
{
	void (*cancel)(struct rsb_request *) = NULL;
	bool waited = rq->go;

	if (waited) {
		rsb_list_remove(&rq->link);
		rq->go = NULL;
	}
	rsb_mutex_lock(&rq->sess->lock);
	if (!rq->cancelled)
		cancel = rq->cancel;
	rq->cancelled = true;
	rsb_mutex_unlock(&rq->sess->lock);
	if (cancel)
		cancel(rq);
	else if (waited)
		rsb_request_reply(rq, -EINTR, NULL);
}
