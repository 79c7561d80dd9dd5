/* SPDX-License-Identifier: MIT */
#include "link/recall.h"

#include <errno.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/version.h"

#define RSB_LOG_MODULE "link"
#include "util/log.h"

struct recall {
	struct rsb_link *link;
	struct rsb_list calls; /* with a wish; those first of which nothing was sent */
};

bool
rsb_recall_spares(uint32_t op)
{
	switch (op) {
	case RSB_OP_forget:
	case RSB_OP_release:
	case RSB_OP_releasedir:
	case RSB_OP_unlock_all:
	case RSB_OP_wait:
	case RSB_OP_kill:
	case RSB_OP_proc_free:
		return true;
	default:
		return false;
	}
}

void
rsb_recall_wish(struct rsb_link *link, uint64_t id, enum rsb_pending_wish wish, int r)
{
	struct rsb_pending_call *call;

	rsb_mutex_lock(&link->lock);
	call = rsb_pending_get(&link->pending, id);
	if (call && call->fn && call->wish < wish) {
		call->wish = wish;
		call->end_r = r;
		link->orders.recall = true;
	}
	rsb_mutex_unlock(&link->lock);
	rsb_loop_post(link->loop, &link->wake);
}

static bool
writes(const struct rsb_pending_call *call)
{
	return rsb_ops[call->op].flags & RSB_OP_WRITES;
}

/* The size of what stands there now; 0: it could not be put there. */
static size_t
put_skip(struct rsb_link *link, const struct rsb_call_head *head, uint8_t *data, size_t size)
{
	struct rsb_bytes skip;

	rsb_buf_clear(&link->scratch);
	if (rsb_codec_request(RSB_OP_skip, head->id, head->after, NULL, RSB_PROTO_VERSION,
		    &link->scratch) < 0)
		return 0;
	skip = rsb_buf_view(&link->scratch);
	if (skip.size > size)
		return 0;
	memcpy(data, skip.data, skip.size);
	return skip.size;
}

/* Under the link's lock: a message of which nothing was sent. */
static size_t
look(void *arg, uint8_t *data, size_t size)
{
	struct recall *recall = arg;
	struct rsb_link *link = recall->link;
	struct rsb_pending_call *call;
	struct rsb_call_head head;
	size_t left = 0;

	if (rsb_codec_head((struct rsb_bytes){ data, size }, &head) < 0 || head.op == 0)
		return size;
	call = rsb_pending_get(&link->pending, head.id);
	if (!call || call->wish == RSB_PENDING_STAYS)
		return size;
	if (call->wish == RSB_PENDING_WITHDRAW && rsb_recall_spares(call->op))
		return size;
	if (writes(call)) {
		left = put_skip(link, &head, data, size);
		if (left == 0)
			return size;
	} else {
		(void)rsb_pending_take(&link->pending, call->id); /* it is the one in hand */
	}
	call->unsent = true;
	rsb_list_append(&recall->calls, &call->node);
	return left;
}

/* Without memory or room for it the call's result comes as that of any other. */
static void
ask_to_cancel(struct rsb_link *link, uint64_t id)
{
	rsb_autofree struct rsb_pending_call *call = rsb_new(struct rsb_pending_call);
	const struct rsb_cancel_req req = { .call = id };
	int r;

	if (!call)
		return;
	call->op = RSB_OP_cancel;
	rsb_buf_clear(&link->scratch);
	rsb_mutex_lock(&link->lock);
	call->id = link->next_call++;
	r = rsb_codec_request(RSB_OP_cancel, call->id, 0, &req, RSB_PROTO_VERSION, &link->scratch);
	if (r == 0)
		r = rsb_pending_add(&link->pending, call);
	if (r == 0) {
		r = rsb_outbox_message(&link->outbox, RSB_CLASS_READ, rsb_buf_view(&link->scratch));
		if (r < 0)
			(void)rsb_pending_take(&link->pending, call->id); /* just added */
	}
	rsb_mutex_unlock(&link->lock);
	if (r == 0)
		(void)rsb_steal(&call); /* the table's */
	else
		rsb_dbg_r(r, "a call is not cancelled");
}

static void
carry_out(struct rsb_link *link, struct rsb_pending_call *call)
{
	rsb_call_fn fn = call->fn;
	void *arg = call->arg;
	bool gone = call->unsent && !writes(call);
	bool cancel;
	int r;

	rsb_mutex_lock(&link->lock);
	cancel = call->wish == RSB_PENDING_CANCEL && !call->unsent;
	r = call->unsent ? call->end_r : -ENOTCONN;
	call->wish = RSB_PENDING_STAYS;
	if (!cancel && !gone) {
		call->fn = NULL;
		rsb_pending_calm(&link->pending, call);
	}
	rsb_mutex_unlock(&link->lock);
	if (cancel)
		ask_to_cancel(link, call->id);
	else if (fn)
		fn(arg, r, NULL);
	if (gone)
		free(call);
}

void
rsb_recall_run(struct rsb_link *link)
{
	struct recall recall = { .link = link };
	struct rsb_pending_call *call;
	struct rsb_list *pos, *tmp;
	size_t cursor = 0;

	rsb_list_init(&recall.calls);
	rsb_mutex_lock(&link->lock);
	rsb_outbox_edit(&link->outbox, look, &recall);
	rsb_stream_edit(rsb_session_stream(link->session), look, &recall);
	while ((call = rsb_pending_next(&link->pending, &cursor)) != NULL)
		if (call->wish != RSB_PENDING_STAYS && !call->unsent)
			rsb_list_append(&recall.calls, &call->node);
	rsb_mutex_unlock(&link->lock);
	rsb_list_for_each_safe (pos, tmp, &recall.calls)
		carry_out(link, rsb_list_entry(pos, struct rsb_pending_call, node));
}

void
rsb_recall_all(struct rsb_link *link, int r)
{
	struct rsb_pending_call *call;
	size_t cursor = 0;

	rsb_mutex_lock(&link->lock);
	while ((call = rsb_pending_next(&link->pending, &cursor)) != NULL) {
		/* Those that bring a session up anew are awaited, as the connection is. */
		if (!call->fn || rsb_ops[call->op].flags & RSB_OP_ORDERED)
			continue;
		call->wish = RSB_PENDING_WITHDRAW;
		call->end_r = r;
	}
	rsb_mutex_unlock(&link->lock);
	rsb_recall_run(link);
}
