/* SPDX-License-Identifier: MIT */
#include "fuse/send.h"

#include <errno.h>

#include "fuse/fs.h"
#include "proto/codec.h"
#include "proto/version.h"

#define FORGETS_BATCH 1024u

struct call {
	struct rsb_send *send;
	struct rsb_list parked; /* in rsb_send.parked, or unlinked */
	uint64_t serial;
	uint64_t link_call;
	uint32_t op;
	struct rsb_buf req; /* encoded, while parked */
	bool cancelled;     /* while parked */
	rsb_call_fn fn;
	void *arg;
};

/* All {rsb_fs.lock}. */
struct rsb_send {
	struct rsb_fs *fs;
	struct rsb_map calls; /* by serial */
	struct rsb_list parked;
	size_t n_parked;
	uint64_t serial;
	struct rsb_buf forgets;
	size_t n_forget;
};

int
rsb_send_new(struct rsb_fs *fs, struct rsb_send **ret_send)
{
	struct rsb_send *send = rsb_new(struct rsb_send);

	if (!send)
		return -ENOMEM;
	send->fs = fs;
	rsb_list_init(&send->parked);
	rsb_map_init(&send->calls, RSB_CALLS_MAX + RSB_SEND_PARKED_MAX);
	rsb_buf_init(&send->forgets, RSB_MESSAGE_MAX);
	*ret_send = send;
	return 0;
}

static void
call_free(struct call *call)
{
	rsb_list_remove(&call->parked);
	rsb_buf_done(&call->req);
	free(call);
}

void
rsb_send_free(struct rsb_send *send)
{
	struct call *call;
	size_t cursor = 0;

	if (!send)
		return;
	while ((call = rsb_map_next(&send->calls, &cursor, NULL))) {
		if (!rsb_list_empty(&call->parked))
			call->fn(call->arg, -ECANCELED, NULL);
		call_free(call);
	}
	rsb_map_done(&send->calls);
	rsb_buf_done(&send->forgets);
	free(send);
}

/* Out of the table, so that a callback may look at what is pending. */
static void
end_call(struct call *call, int r, const void *rep)
{
	rsb_call_fn fn = call->fn;
	void *arg = call->arg;

	(void)rsb_map_del(&call->send->calls, call->serial);
	call->send->fs->stats.withdrawn += r == -ECANCELED;
	call_free(call);
	fn(arg, r, rep);
}

static void on_reply(void *arg, int r, const void *rep);

static int
hand_over(struct call *call, const void *req)
{
	struct rsb_send *send = call->send;
	/* Of mutations it says nothing: they have their place in the order anyway. */
	const struct rsb_call_opts opts = { .after = RSB_AFTER_ALL };
	uint64_t fifo = 0;
	int r;

	r = rsb_link_call(
		send->fs->link, call->op, req, &opts, on_reply, call, &call->link_call, &fifo);
	if (r < 0)
		return r;
	send->fs->stats.calls++;
	if (fifo)
		send->fs->shared->head.link_fifo = fifo;
	return 0;
}

/* 1: it is on its way or has ended; 0: there is still no room. */
static int
try_parked(struct call *call)
{
	union {
		char bytes[2048];
		uint64_t align;
	} req;
	const struct rsb_message_desc *desc = rsb_ops[call->op].req;
	int r;

	if (call->cancelled)
		r = -EINTR;
	else if (desc->size > sizeof(req))
		r = -EMSGSIZE;
	else
		r = rsb_codec_decode(desc, rsb_buf_view(&call->req), &req);
	if (r >= 0)
		r = hand_over(call, &req);
	if (r == -EAGAIN)
		return 0;
	rsb_list_remove(&call->parked);
	call->send->n_parked--;
	rsb_buf_done(&call->req);
	if (r < 0)
		end_call(call, r, NULL);
	return 1;
}

void
rsb_send_retry(struct rsb_send *send)
{
	while (!rsb_list_empty(&send->parked)) {
		if (!try_parked(rsb_list_entry(send->parked.next, struct call, parked)))
			return;
	}
}

static void
on_reply(void *arg, int r, const void *rep)
{
	struct call *call = arg;
	struct rsb_send *send = call->send;
	struct rsb_fs *fs = send->fs;

	rsb_mutex_lock(&fs->lock);
	end_call(call, r, rep);
	rsb_send_retry(send);
	rsb_mutex_unlock(&fs->lock);
}

static int
park(struct call *call, const void *req)
{
	static const struct rsb_empty empty;
	struct rsb_send *send = call->send;
	int r;

	if (send->n_parked >= RSB_SEND_PARKED_MAX)
		return -ENOBUFS;
	rsb_buf_init(&call->req, RSB_MESSAGE_MAX);
	r = rsb_codec_encode(
		rsb_ops[call->op].req, req ? req : &empty, RSB_PROTO_VERSION, &call->req);
	if (r < 0)
		return r;
	rsb_list_append(&send->parked, &call->parked);
	send->n_parked++;
	send->fs->stats.parked++;
	return 0;
}

int
rsb_send_call(struct rsb_send *send, uint32_t op, const void *req, rsb_call_fn fn, void *arg,
	uint64_t *ret_serial)
{
	struct call *call = rsb_new(struct call);
	int r;

	if (!call)
		return -ENOMEM;
	*call = (struct call){ .send = send, .op = op, .fn = fn, .arg = arg };
	call->serial = ++send->serial;
	rsb_list_init(&call->parked);
	r = rsb_map_put(&send->calls, call->serial, call);
	if (r >= 0) {
		/* Behind those that wait already, or mutations would change places. */
		r = rsb_list_empty(&send->parked) ? hand_over(call, req) : -EAGAIN;
		if (r == -EAGAIN)
			r = park(call, req);
	}
	if (r < 0) {
		(void)rsb_map_del(&send->calls, call->serial);
		call_free(call);
		return r;
	}
	if (ret_serial)
		*ret_serial = call->serial;
	return 0;
}

void
rsb_send_cancel(struct rsb_send *send, uint64_t serial)
{
	struct call *call = rsb_map_get(&send->calls, serial);

	if (!call)
		return;
	if (rsb_list_empty(&call->parked))
		rsb_link_cancel(send->fs->link, call->link_call);
	else
		call->cancelled = true;
}

void
rsb_send_withdraw(struct rsb_send *send, uint64_t serial)
{
	struct call *call = rsb_map_get(&send->calls, serial);

	if (!call)
		return;
	if (rsb_list_empty(&call->parked)) {
		rsb_link_withdraw(send->fs->link, call->link_call);
		return;
	}
	rsb_list_remove(&call->parked);
	send->n_parked--;
	end_call(call, -ECANCELED, NULL);
}

void
rsb_send_reset(struct rsb_send *send)
{
	while (!rsb_list_empty(&send->parked)) {
		struct call *call = rsb_list_entry(send->parked.next, struct call, parked);

		rsb_list_remove(&call->parked);
		send->n_parked--;
		end_call(call, -ENOTCONN, NULL);
	}
	rsb_buf_clear(&send->forgets);
	send->n_forget = 0;
}

size_t
rsb_send_pending(const struct rsb_send *send)
{
	return send->calls.n;
}

size_t
rsb_send_parked(const struct rsb_send *send)
{
	return send->n_parked;
}

static void
ignore_reply(void *arg, int r, const void *rep)
{
	(void)arg;
	(void)r;
	(void)rep;
}

void
rsb_send_post(struct rsb_send *send, uint32_t op, const void *req)
{
	/* Without memory or room for it the far side keeps a little longer what it has. */
	(void)rsb_send_call(send, op, req, ignore_reply, NULL, NULL);
}

void
rsb_send_forget(struct rsb_send *send, uint64_t id, uint64_t n)
{
	const struct rsb_forget_one one = { .id = id, .n = n };

	if (rsb_seq_append(&rsb_desc_rsb_forget_one, &one, RSB_PROTO_VERSION, &send->forgets) < 0)
		return;
	if (++send->n_forget >= FORGETS_BATCH)
		rsb_send_flush_forgets(send);
}

void
rsb_send_flush_forgets(struct rsb_send *send)
{
	struct rsb_forget_req req;

	if (!send->n_forget)
		return;
	req.nodes = rsb_seq_of(&send->forgets, send->n_forget);
	rsb_send_post(send, RSB_OP_forget, &req);
	rsb_buf_clear(&send->forgets);
	send->n_forget = 0;
}
