/* SPDX-License-Identifier: MIT */
#include "link/core.h"

#include <errno.h>
#include <string.h>

#include "link/recall.h"
#include "link/talk.h"
#include "proto/codec.h"
#include "proto/version.h"

#define RSB_LOG_MODULE "link"
#include "util/log.h"

#define WRITABLE_MAX 32

static void
finish_stop(struct rsb_link *link)
{
	rsb_talk_end_calls(link, -ECANCELED);
	rsb_loop_stop(link->loop);
}

static void
on_connected(void *arg, struct rsb_attempt *attempt)
{
	struct rsb_link *link = arg;
	struct rsb_wire_config config = {
		.loop = link->loop,
		.key = &link->key,
		.headers = rsb_attempt_headers(attempt),
		.deadline_ns = rsb_attempt_deadline(attempt),
		.ops = &rsb_talk_wire_ops,
		.arg = link,
	};
	int r;

	r = rsb_attempt_result(attempt, &config.connect);
	if (r < 0)
		rsb_talk_set_why(link, rsb_attempt_text(attempt));
	else if (link->stopping)
		rsb_connect_free(config.connect);
	else
		r = rsb_wire_new(&config, &link->wire);
	if (link->wire)
		rsb_talk_set_state(link, RSB_LINK_RESYNC, 0, false);
	rsb_attempt_free(rsb_steal(&link->attempt));
	if (link->stopping)
		finish_stop(link);
	else if (r < 0)
		rsb_talk_set_state(link, RSB_LINK_DOWN, r, false);
}

static void
start_attempt(struct rsb_link *link, struct rsb_attempt *attempt)
{
	int r;

	link->attempt = attempt;
	if (link->ops->state)
		link->ops->state(link->arg, RSB_LINK_CONNECTING, 0, false);
	r = rsb_attempt_start(attempt, link->loop, on_connected, link);
	if (r == 0)
		return;
	rsb_attempt_free(rsb_steal(&link->attempt));
	rsb_talk_set_state(link, RSB_LINK_DOWN, r, false);
}

static void
drop(struct rsb_link *link, int reason)
{
	if (link->attempt)
		rsb_attempt_abort(link->attempt);
	else if (link->wire)
		rsb_talk_lost(link, reason);
}

static void
apply_fail(struct rsb_link *link)
{
	enum rsb_link_state state;
	int r;

	rsb_mutex_lock(&link->lock);
	r = link->fail_r;
	state = r < 0 ? RSB_LINK_FAILED : link->state;
	rsb_mutex_unlock(&link->lock);
	if (r < 0)
		rsb_recall_all(link, r);
	if (link->ops->state)
		link->ops->state(link->arg, state, r, false);
}

static void
stop(struct rsb_link *link)
{
	link->stopping = true;
	if (link->wire) {
		rsb_wire_bye(link->wire);
		rsb_talk_lost(link, -ECANCELED);
	}
	if (link->attempt)
		rsb_attempt_abort(link->attempt);
	else
		finish_stop(link);
}

static void
on_wake(struct rsb_task *task)
{
	struct rsb_link *link = rsb_container_of(task, struct rsb_link, wake);
	struct rsb_link_orders orders;

	rsb_mutex_lock(&link->lock);
	orders = link->orders;
	link->orders = (struct rsb_link_orders){ 0 };
	rsb_mutex_unlock(&link->lock);
	if (orders.stop) {
		rsb_attempt_free(orders.attempt);
		rsb_secret_done(&orders.new_key);
		stop(link);
		return;
	}
	if (orders.aborted)
		rsb_talk_set_state(link, RSB_LINK_DOWN, -ECANCELED, false);
	if (orders.reset) {
		drop(link, -ENOTCONN);
		link->key = orders.new_key;
		rsb_secret_done(&orders.new_key);
		memcpy(link->sandbox_id, orders.new_id, sizeof(link->sandbox_id));
		rsb_talk_lose_session(link);
		if (link->ops->state)
			link->ops->state(link->arg, RSB_LINK_DOWN, -ENOTCONN, true);
	}
	if (orders.drop)
		drop(link, orders.drop_reason);
	if (orders.recall)
		rsb_recall_run(link);
	if (orders.fail)
		apply_fail(link);
	if (orders.attempt)
		start_attempt(link, orders.attempt);
	if (orders.go_on && link->wire && rsb_wire_is_open(link->wire))
		rsb_talk_set_state(link, rsb_talk_up(link), 0, false);
	rsb_core_pump(link);
}

/* What others left goes into the session; who waits for room is told. */
static int
drain(struct rsb_link *link)
{
	uint64_t writable[WRITABLE_MAX];
	struct rsb_list items, done;
	size_t n, i;
	int r;

	rsb_list_init(&items);
	rsb_list_init(&done);
	do {
		rsb_mutex_lock(&link->lock);
		rsb_outbox_take(&link->outbox, &items);
		rsb_mutex_unlock(&link->lock);
		r = rsb_outbox_apply(link->session, &items, &done);
		rsb_mutex_lock(&link->lock);
		rsb_outbox_settle(&link->outbox, &items, &done);
		n = rsb_outbox_refresh(&link->outbox, link->session, writable, WRITABLE_MAX);
		rsb_mutex_unlock(&link->lock);
		for (i = 0; i < n && link->ops->chan_writable; i++)
			link->ops->chan_writable(link->arg, writable[i]);
	} while (n > 0 && r == 0);
	return r;
}

static void
arm(struct rsb_link *link)
{
	uint64_t session_ns = rsb_session_deadline(link->session);
	uint64_t call_ns;

	rsb_mutex_lock(&link->lock);
	call_ns = rsb_pending_deadline(&link->pending);
	link->rtt_ns = rsb_session_rtt(link->session);
	rsb_mutex_unlock(&link->lock);
	if (session_ns == 0 || (call_ns != 0 && call_ns < session_ns))
		session_ns = call_ns;
	rsb_timer_set(link->timer, session_ns);
}

void
rsb_core_pump(struct rsb_link *link)
{
	int r;

	if (link->stopping)
		return;
	r = drain(link);
	if (r < 0) {
		rsb_dbg_r(r, "session ended");
		if (link->wire) {
			link->poisoned = true;
			rsb_talk_lost(link, r);
		} else {
			rsb_talk_lose_session(link);
		}
	}
	if (link->wire && rsb_wire_is_open(link->wire)) {
		r = rsb_wire_flush(link->wire);
		if (r < 0)
			rsb_talk_lost(link, r);
	}
	rsb_talk_count(link);
	arm(link);
}

/* Their callers are told; the far side is asked to give up what nobody waits for any more. */
static void
end_late_calls(struct rsb_link *link, uint64_t now_ns)
{
	struct rsb_pending_call *call;
	rsb_call_fn fn = NULL;
	void *arg = NULL;
	bool any = false;

	for (;;) {
		rsb_mutex_lock(&link->lock);
		call = rsb_pending_late(&link->pending, now_ns);
		if (call) {
			fn = call->fn;
			arg = call->arg;
			call->fn = NULL;
			call->wish = RSB_PENDING_CANCEL;
		}
		rsb_mutex_unlock(&link->lock);
		if (!call)
			break;
		any = true;
		fn(arg, -ETIMEDOUT, NULL);
	}
	if (any)
		rsb_recall_run(link);
}

static void
on_timer(void *arg)
{
	struct rsb_link *link = arg;
	uint64_t now_ns = rsb_loop_now(link->loop);
	int r;

	end_late_calls(link, now_ns);
	if (rsb_session_attached(link->session)) {
		r = rsb_session_tick(link->session, now_ns);
		if (r < 0) {
			rsb_talk_set_why(link, "no sign of life from the sandbox");
			rsb_talk_lost(link, r);
		} else if (!link->suspect && rsb_session_suspect(link->session, now_ns)) {
			link->suspect = true;
			rsb_talk_set_state(link, RSB_LINK_SUSPECT, -ETIMEDOUT, false);
		}
	}
	rsb_core_pump(link);
}

/* ---- life ---- */

static size_t
reply_size(void)
{
	size_t size = 1;
	size_t i;

	for (i = 0; i <= RSB_OP_NUMBER_MAX; i++)
		if (rsb_ops[i].name)
			size = rsb_max(size, (size_t)rsb_ops[i].rep->size);
	return size;
}

int
rsb_core_init(struct rsb_link *link)
{
	int r;

	link->wake.fn = on_wake;
	rsb_buf_init(&link->scratch, RSB_MESSAGE_MAX);
	link->reply = malloc(reply_size());
	if (!link->reply)
		return -ENOMEM;
	r = rsb_random(link->client_id, sizeof(link->client_id));
	if (r < 0)
		return r;
	r = rsb_random(link->session_id, sizeof(link->session_id));
	if (r < 0)
		return r;
	r = rsb_talk_new_session(link, &link->session);
	if (r < 0)
		return r;
	r = rsb_loop_new(rsb_clock_monotonic(), &link->loop);
	if (r < 0)
		return r;
	return rsb_timer_new(link->loop, on_timer, link, &link->timer);
}

void
rsb_core_restore(struct rsb_link *link)
{
	struct rsb_link_saved *saved = link->saved;

	if (!saved)
		return;
	link->next_id = rsb_max(link->next_id, saved->next_id);
	if (saved->next_call)
		link->next_call = saved->next_call + RSB_LINK_CALLS_SKIPPED;
	saved->next_id = link->next_id;
	saved->next_call = link->next_call;
	link->first_call = link->next_call;
	saved->incarnation++;
	/* What it is that we talk to is known without a session as well. */
	if (saved->facts.workspace[0]) {
		link->facts = saved->facts;
		link->has_facts = true;
	}
	if (!saved->welcomed)
		return;
	memcpy(link->client_id, saved->client_id, sizeof(link->client_id));
	memcpy(link->session_id, saved->session_id, sizeof(link->session_id));
	memcpy(link->epoch, saved->epochs[saved->epoch_at & 1], sizeof(link->epoch));
	link->epoch_size = strlen(link->epoch);
	link->welcomed = true;
	link->fifo = saved->fifo;
}

void
rsb_core_done(struct rsb_link *link)
{
	rsb_wire_free(link->wire);
	rsb_zip_free(link->zip);
	rsb_timer_del(link->timer);
	rsb_loop_free(link->loop);
	rsb_session_free(link->session);
	rsb_buf_done(&link->scratch);
	free(link->reply);
	rsb_secret_done(&link->key);
}

void *
rsb_core_run(void *arg)
{
	struct rsb_link *link = arg;
	int r;

	r = rsb_loop_run(link->loop);
	if (r < 0)
		rsb_dbg_r(r, "io thread ended");
	return NULL;
}
