/* SPDX-License-Identifier: MIT */
#include "fuse/send.h"

#include <errno.h>

#include "fuse/fop.h"
#include "fuse/ledger.h"
#include "fuse/limbo.h"
#include "fuse/sending.h"
#include "proto/version.h"

#define FORGETS_BATCH 1024u

int
rsb_send_new(struct rsb_fs *fs, struct rsb_send **ret_send)
{
	struct rsb_send *send = rsb_new(struct rsb_send);

	if (!send)
		return -ENOMEM;
	send->fs = fs;
	rsb_list_init(&send->parked);
	rsb_list_init(&send->limbo);
	rsb_map_init(&send->calls, RSB_CALLS_MAX + RSB_SEND_PARKED_MAX);
	rsb_map_init(&send->found, RSB_SHARED_FLIGHTS_MAX);
	rsb_buf_init(&send->forgets, RSB_MESSAGE_MAX);
	*ret_send = send;
	return 0;
}

static void
call_free(struct rsb_sending *call)
{
	rsb_list_remove(&call->parked);
	rsb_buf_done(&call->req);
	free(call);
}

void
rsb_send_free(struct rsb_send *send)
{
	struct rsb_sending *call;
	size_t cursor = 0;

	if (!send)
		return;
	while ((call = rsb_map_next(&send->calls, &cursor, NULL))) {
		if (!rsb_list_empty(&call->parked))
			call->fn(call->arg, -ECANCELED, NULL);
		call_free(call);
	}
	rsb_map_done(&send->calls);
	rsb_map_done(&send->found);
	rsb_buf_done(&send->forgets);
	free(send);
}

/*
 * Out of the table, so that a callback may look at what is pending; out of the ledger only when all
 * is done that the reply brings.
 */
void
rsb_sending_end(struct rsb_sending *call, int r, const void *rep)
{
	struct rsb_send *send = call->send;
	struct rsb_shared_call *shared = call->shared;
	rsb_call_fn fn = call->fn;
	void *arg = call->arg;

	(void)rsb_map_del(&send->calls, call->serial);
	send->fs->stats.withdrawn += r == -ECANCELED;
	if (shared && shared->unique && rsb_map_get(&send->found, shared->unique) == call)
		(void)rsb_map_del(&send->found, shared->unique);
	call_free(call);
	if (!shared) {
		fn(arg, r, rep);
		return;
	}
	rsb_inodes_take_gifts(send->fs->inodes, &shared->n_counted);
	fn(arg, r, rep);
	rsb_inodes_take_gifts(send->fs->inodes, NULL);
	rsb_ledger_end_call(send->fs->ledger, shared);
}

static void on_reply(void *arg, int r, const void *rep);

/* What is in the ledger is what the next process, or we for the next sidecar, make again. */
int
rsb_sending_hand_over(struct rsb_sending *call, const void *req, unsigned int how)
{
	struct rsb_send *send = call->send;
	struct rsb_shared_call *shared = call->shared;
	bool again = how & RSB_SENDING_AGAIN;
	/* Of mutations it says nothing: they have their place in the order anyway. */
	struct rsb_call_opts opts = {
		.after = RSB_AFTER_ALL,
		.again = again,
		.first = how & RSB_SENDING_FIRST,
		.revives = shared != NULL,
	};
	bool writes = rsb_ops[call->op].flags & RSB_OP_WRITES;
	int r;

	if (shared)
		opts.call = shared->call;
	/* Those between that do not come again were given up: who reads this goes on without. */
	if (shared && writes && again)
		opts.after = shared->fifo - 1;
	if (shared && writes && !again)
		shared->fifo = rsb_link_fifo(send->fs->link) + 1;
	r = rsb_link_call(send->fs->link, call->op, req, &opts,
		(struct rsb_call_done){ on_reply, call }, &call->link_call);
	if (r < 0 && shared && !again)
		shared->fifo = 0;
	if (r >= 0)
		send->fs->stats.calls++;
	return r;
}

/* Into the ledger, if it belongs there. */
static int
enter(struct rsb_sending *call, const void *req, uint64_t unique, uint64_t mark)
{
	static const struct rsb_empty empty;
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf bytes = { .max = RSB_MESSAGE_MAX };
	struct rsb_fs *fs = call->send->fs;
	struct rsb_shared_call from = { .op = call->op, .unique = unique, .mark = mark };
	int r;

	if (rsb_ops[call->op].flags & RSB_OP_INLINE)
		return 0;
	/* Twice it would take away what was given since; lost it costs the far side memory. */
	if (call->op == RSB_OP_forget)
		return 0;
	r = rsb_codec_encode(rsb_ops[call->op].req, req ? req : &empty, RSB_PROTO_VERSION, &bytes);
	if (r < 0)
		return r;
	from.call = rsb_link_new_call(fs->link);
	return rsb_ledger_call(fs->ledger, &from, rsb_buf_view(&bytes), &call->shared);
}

int
rsb_sending_decode(struct rsb_sending *call, struct rsb_buf *buf, union rsb_sending_msg *ret_req)
{
	const struct rsb_message_desc *desc = rsb_ops[call->op].req;
	struct rsb_bytes bytes = rsb_buf_view(&call->req);
	int r;

	if (desc->size > sizeof(*ret_req))
		return -EMSGSIZE;
	if (call->shared) {
		r = rsb_arena_read(
			rsb_ledger_arena(call->send->fs->ledger), &call->shared->req, buf);
		if (r < 0)
			return r;
		bytes = rsb_buf_view(buf);
	}
	return rsb_codec_decode(desc, bytes, ret_req);
}

/* 1: it is on its way or has ended; 0: there is still no room. */
static int
try_parked(struct rsb_sending *call)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = RSB_MESSAGE_MAX };
	union rsb_sending_msg req;
	int r;

	r = call->cancelled ? -EINTR : rsb_sending_decode(call, &buf, &req);
	if (r >= 0)
		r = rsb_sending_hand_over(call, &req, 0);
	if (r == -EAGAIN)
		return 0;
	rsb_list_remove(&call->parked);
	call->send->n_parked--;
	rsb_buf_done(&call->req);
	if (r < 0)
		rsb_sending_end(call, r, NULL);
	return 1;
}

void
rsb_send_retry(struct rsb_send *send)
{
	while (!rsb_list_empty(&send->parked)) {
		if (!try_parked(rsb_list_entry(send->parked.next, struct rsb_sending, parked)))
			return;
	}
}

static void
on_reply(void *arg, int r, const void *rep)
{
	struct rsb_sending *call = arg;
	struct rsb_send *send = call->send;
	struct rsb_fs *fs = send->fs;

	rsb_mutex_lock(&fs->lock);
	if (r == -ERESTART)
		rsb_limbo_put(call);
	else
		rsb_sending_end(call, r, rep);
	rsb_send_retry(send);
	rsb_mutex_unlock(&fs->lock);
}

static int
park(struct rsb_sending *call, const void *req)
{
	static const struct rsb_empty empty;
	struct rsb_send *send = call->send;
	int r;

	if (send->n_parked >= RSB_SEND_PARKED_MAX)
		return -ENOBUFS;
	rsb_buf_init(&call->req, RSB_MESSAGE_MAX);
	r = call->shared ? 0
			 : rsb_codec_encode(rsb_ops[call->op].req, req ? req : &empty,
				   RSB_PROTO_VERSION, &call->req);
	if (r < 0)
		return r;
	rsb_list_append(&send->parked, &call->parked);
	send->n_parked++;
	send->fs->stats.parked++;
	return 0;
}

/* A call in the table that was not sent yet. */
static int
call_new(struct rsb_send *send, uint32_t op, rsb_call_fn fn, void *arg,
	struct rsb_sending **ret_call)
{
	struct rsb_sending *call = rsb_new(struct rsb_sending);
	int r;

	if (!call)
		return -ENOMEM;
	*call = (struct rsb_sending){ .send = send, .op = op, .fn = fn, .arg = arg };
	call->serial = ++send->serial;
	rsb_list_init(&call->parked);
	r = rsb_map_put(&send->calls, call->serial, call);
	if (r < 0) {
		free(call);
		return r;
	}
	*ret_call = call;
	return 0;
}

/* For what it is; unique: the request that waits for it. */
struct purpose {
	uint64_t unique;
	uint64_t mark;
};

static int
make_call(struct rsb_sending *call, const void *req, const struct purpose *purpose,
	uint64_t *ret_serial)
{
	struct rsb_send *send = call->send;
	uint64_t serial = call->serial;
	int r;

	r = enter(call, req, purpose->unique, purpose->mark);
	if (r >= 0) {
		/* Behind those that wait already, or mutations would change places. */
		r = rsb_list_empty(&send->parked) ? rsb_sending_hand_over(call, req, 0) : -EAGAIN;
		if (r == -EAGAIN)
			r = park(call, req);
	}
	if (r < 0) {
		(void)rsb_map_del(&send->calls, serial);
		if (call->shared)
			rsb_ledger_end_call(send->fs->ledger, call->shared);
		call_free(call);
		return r;
	}
	if (ret_serial)
		*ret_serial = serial;
	return 0;
}

int
rsb_send_call(struct rsb_send *send, uint32_t op, const void *req, rsb_call_fn fn, void *arg,
	uint64_t *ret_serial)
{
	const struct purpose purpose = { .unique = 0 };
	struct rsb_sending *call;
	int r;

	r = call_new(send, op, fn, arg, &call);
	return r < 0 ? r : make_call(call, req, &purpose, ret_serial);
}

int
rsb_send_call_of(
	struct rsb_fop *fop, uint32_t op, const void *req, rsb_call_fn fn, uint64_t *ret_serial)
{
	struct rsb_send *send = fop->fs->send;
	const struct purpose purpose = { .unique = fop->flight->unique };
	struct rsb_sending *call = rsb_map_get(&send->found, purpose.unique);
	int r;

	if (call && call->op == op) {
		(void)rsb_map_del(&send->found, purpose.unique);
		*ret_serial = call->serial;
		rsb_send_claim(send, call->serial, fn, fop);
		return 0;
	}
	r = call_new(send, op, fn, fop, &call);
	return r < 0 ? r : make_call(call, req, &purpose, ret_serial);
}

int
rsb_send_write(struct rsb_send *send, const struct rsb_write_req *req, uint64_t mark,
	rsb_call_fn fn, void *arg)
{
	const struct purpose purpose = { .mark = mark };
	struct rsb_sending *call;
	int r;

	r = call_new(send, RSB_OP_write, fn, arg, &call);
	return r < 0 ? r : make_call(call, req, &purpose, NULL);
}

int
rsb_send_again(struct rsb_send *send, struct rsb_shared_call *shared, bool lost, rsb_call_fn fn,
	void *arg, uint64_t *ret_serial)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = RSB_MESSAGE_MAX };
	/* A mutation without a number never was in the link. */
	bool again = shared->fifo || !(rsb_ops[shared->op].flags & RSB_OP_WRITES);
	union rsb_sending_msg req;
	struct rsb_sending *call;
	int r;

	r = call_new(send, shared->op, fn, arg, &call);
	if (r < 0)
		return r;
	call->shared = shared;
	call->lost = lost;
	*ret_serial = call->serial;
	r = rsb_sending_decode(call, &buf, &req);
	if (r >= 0 && shared->unique)
		r = rsb_map_put(&send->found, shared->unique, call);
	if (r >= 0 && !lost)
		r = rsb_list_empty(&send->parked)
			    ? rsb_sending_hand_over(call, &req, again ? RSB_SENDING_AGAIN : 0)
			    : -EAGAIN;
	return r == -EAGAIN && !again ? park(call, &req) : r;
}

void
rsb_send_claim(struct rsb_send *send, uint64_t serial, rsb_call_fn fn, void *arg)
{
	struct rsb_sending *call = rsb_map_get(&send->calls, serial);

	free(call->arg);
	call->fn = fn;
	call->arg = arg;
}

void
rsb_send_end_lost(struct rsb_send *send)
{
	struct rsb_sending *call;
	size_t cursor = 0;

	while ((call = rsb_map_next(&send->calls, &cursor, NULL))) {
		if (!call->lost)
			continue;
		rsb_sending_end(call, -ENOTCONN, NULL);
		/* It may have made others. */
		cursor = 0;
	}
}

void
rsb_send_cancel(struct rsb_send *send, uint64_t serial)
{
	struct rsb_sending *call = rsb_map_get(&send->calls, serial);

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
	struct rsb_sending *call = rsb_map_get(&send->calls, serial);

	if (!call)
		return;
	if (call->in_limbo) {
		rsb_limbo_give_up(call, -ECANCELED);
		return;
	}
	if (rsb_list_empty(&call->parked)) {
		rsb_link_withdraw(send->fs->link, call->link_call);
		return;
	}
	rsb_list_remove(&call->parked);
	send->n_parked--;
	rsb_sending_end(call, -ECANCELED, NULL);
}

int
rsb_send_first(struct rsb_send *send, uint32_t op, const void *req, rsb_call_fn fn, void *arg)
{
	struct rsb_sending *call;
	int r;

	r = call_new(send, op, fn, arg, &call);
	if (r < 0)
		return r;
	r = rsb_sending_hand_over(call, req, RSB_SENDING_FIRST);
	if (r >= 0)
		return 0;
	(void)rsb_map_del(&send->calls, call->serial);
	call_free(call);
	return r;
}

void
rsb_send_reset(struct rsb_send *send)
{
	rsb_limbo_end(send, -ENOTCONN);
	while (!rsb_list_empty(&send->parked)) {
		struct rsb_sending *call =
			rsb_list_entry(send->parked.next, struct rsb_sending, parked);

		rsb_list_remove(&call->parked);
		send->n_parked--;
		rsb_sending_end(call, -ENOTCONN, NULL);
	}
	rsb_send_drop_forgets(send);
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
	rsb_send_drop_forgets(send);
}

void
rsb_send_drop_forgets(struct rsb_send *send)
{
	rsb_buf_clear(&send->forgets);
	send->n_forget = 0;
}
