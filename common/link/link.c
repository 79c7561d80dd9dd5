/* SPDX-License-Identifier: MIT */
#include "link/link.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "link/core.h"
#include "link/recall.h"
#include "proto/codec.h"
#include "proto/version.h"
#include "util/clock.h"

#define FIRST_ID 2 /* 1 is the root */

static void
link_destroy(struct rsb_link *link)
{
	rsb_core_done(link);
	rsb_pending_done(&link->pending);
	rsb_outbox_done(&link->outbox);
	rsb_attempt_free(link->orders.attempt);
	rsb_secret_done(&link->orders.new_key);
	rsb_mutex_done(&link->lock);
	free(link);
}
RSB_DEFINE_CLEANUP(struct rsb_link *, link_destroy)

int
rsb_link_new(const struct rsb_link_config *config, struct rsb_link **ret_link)
{
	RSB_CLEANUP(link_destroyp) struct rsb_link *link = rsb_new(struct rsb_link);
	int r;

	if (!link)
		return -ENOMEM;
	link->ops = config->ops;
	link->arg = config->arg;
	link->ping_ns = config->ping_ns;
	link->key = config->key;
	memcpy(link->sandbox_id, config->sandbox_id, sizeof(link->sandbox_id));
	link->sandbox_id[sizeof(link->sandbox_id) - 1] = '\0';
	link->next_id = FIRST_ID;
	link->next_call = 1;
	link->saved = config->saved;
	rsb_mutex_init(&link->lock);
	rsb_pending_init(&link->pending, RSB_CALLS_MAX);
	rsb_outbox_init(&link->outbox, RSB_HOST_SEND_MAX);
	r = rsb_core_init(link);
	if (r < 0)
		return r;
	rsb_core_restore(link);
	r = rsb_thread_start("rsb-io", rsb_core_run, link, &link->thread);
	if (r < 0)
		return r;
	*ret_link = rsb_steal(&link);
	return 0;
}

static void
wake(struct rsb_link *link)
{
	rsb_loop_post(link->loop, &link->wake);
}

void
rsb_link_stop(struct rsb_link *link)
{
	bool stopped;

	if (!link)
		return;
	rsb_mutex_lock(&link->lock);
	stopped = link->stopped;
	link->stopped = true;
	link->orders.stop = true;
	rsb_mutex_unlock(&link->lock);
	if (stopped)
		return;
	wake(link);
	(void)pthread_join(link->thread, NULL); /* it ends by that order alone */
}

void
rsb_link_free(struct rsb_link *link)
{
	if (!link)
		return;
	rsb_link_stop(link);
	link_destroy(link);
}

int
rsb_link_connect(struct rsb_link *link, const struct rsb_link_target *target)
{
	RSB_CLEANUP(rsb_attempt_freep) struct rsb_attempt *attempt = NULL;
	int r;

	r = rsb_attempt_new(target, &attempt);
	if (r < 0)
		return r;
	rsb_mutex_lock(&link->lock);
	if (link->stopped)
		r = -ECANCELED;
	else if (link->state != RSB_LINK_DOWN)
		r = -EALREADY;
	if (r == 0) {
		link->state = RSB_LINK_CONNECTING;
		link->orders.attempt = rsb_steal(&attempt);
	}
	rsb_mutex_unlock(&link->lock);
	if (r == 0)
		wake(link);
	return r;
}

/* An order to connect that is older than one to drop the connection must not outlive it. */
static struct rsb_attempt *
take_back_locked(struct rsb_link *link)
{
	if (link->orders.attempt)
		link->orders.aborted = true;
	return rsb_steal(&link->orders.attempt);
}

void
rsb_link_disconnect(struct rsb_link *link, int reason)
{
	struct rsb_attempt *attempt;

	rsb_mutex_lock(&link->lock);
	attempt = take_back_locked(link);
	link->orders.drop = true;
	link->orders.drop_reason = reason;
	rsb_mutex_unlock(&link->lock);
	rsb_attempt_free(attempt);
	wake(link);
}

void
rsb_link_fail(struct rsb_link *link, int r)
{
	bool changed;

	rsb_mutex_lock(&link->lock);
	changed = link->fail_r != r;
	link->fail_r = r;
	if (changed)
		link->orders.fail = true;
	rsb_mutex_unlock(&link->lock);
	if (changed)
		wake(link);
}

int
rsb_link_reset(struct rsb_link *link, const char *sandbox_id, const struct rsb_secret *key)
{
	struct rsb_attempt *attempt;

	if (strlen(sandbox_id) >= sizeof(link->orders.new_id))
		return -EINVAL;
	rsb_mutex_lock(&link->lock);
	attempt = take_back_locked(link);
	link->orders.reset = true;
	link->orders.new_key = *key;
	strcpy(link->orders.new_id, sandbox_id);
	rsb_mutex_unlock(&link->lock);
	rsb_attempt_free(attempt);
	wake(link);
	return 0;
}

const char *
rsb_link_state_name(enum rsb_link_state state)
{
	static const char *const names[] = {
		[RSB_LINK_DOWN] = "down",
		[RSB_LINK_CONNECTING] = "down",
		[RSB_LINK_RESYNC] = "resync",
		[RSB_LINK_LIVE] = "live",
		[RSB_LINK_SUSPECT] = "suspect",
		[RSB_LINK_FAILED] = "down",
	};

	return names[state];
}

enum rsb_link_state
rsb_link_connection(struct rsb_link *link)
{
	enum rsb_link_state state;

	rsb_mutex_lock(&link->lock);
	state = link->state;
	rsb_mutex_unlock(&link->lock);
	return state;
}

enum rsb_link_state
rsb_link_state(struct rsb_link *link)
{
	enum rsb_link_state state;

	rsb_mutex_lock(&link->lock);
	state = link->fail_r < 0 ? RSB_LINK_FAILED : link->state;
	rsb_mutex_unlock(&link->lock);
	return state;
}

int
rsb_link_facts(struct rsb_link *link, struct rsb_link_facts *ret_facts)
{
	int r = -ENOTCONN;

	rsb_mutex_lock(&link->lock);
	if (link->has_facts) {
		*ret_facts = link->facts;
		r = 0;
	}
	rsb_mutex_unlock(&link->lock);
	return r;
}

uint64_t
rsb_link_rtt(struct rsb_link *link)
{
	uint64_t rtt_ns;

	rsb_mutex_lock(&link->lock);
	rtt_ns = link->rtt_ns;
	rsb_mutex_unlock(&link->lock);
	return rtt_ns;
}

int64_t
rsb_link_skew_ns(struct rsb_link *link)
{
	struct rsb_link_facts facts = { 0 };
	uint64_t rtt_ns = rsb_link_rtt(link);

	if (rsb_link_facts(link, &facts) < 0)
		return 0;
	/* Welcome was under way for half of it. */
	return (int64_t)((uint64_t)facts.clock_ns + rsb_boot_ns() - rsb_wall_ns() + rtt_ns / 2);
}

void
rsb_link_why(struct rsb_link *link, struct rsb_diag *ret_why)
{
	rsb_mutex_lock(&link->lock);
	*ret_why = link->why;
	rsb_mutex_unlock(&link->lock);
}

void
rsb_link_stats(struct rsb_link *link, struct rsb_link_stats *ret_stats)
{
	rsb_mutex_lock(&link->lock);
	*ret_stats = link->stats;
	ret_stats->waiting = link->pending.calls.n;
	rsb_mutex_unlock(&link->lock);
}

/* ---- calls ---- */

static int
refused(const struct rsb_link *link, uint32_t op, const struct rsb_call_opts *opts)
{
	if (link->stopped)
		return -ECANCELED;
	if (rsb_ops[op].flags & RSB_OP_ORDERED)
		return 0;
	if (link->fail_r < 0 && !rsb_recall_spares(op))
		return link->fail_r;
	return link->gated && !(opts && opts->first) ? -EAGAIN : 0;
}

/*
 * What the message needs of the link's state. The number of a session that ended meanwhile is
 * not used: see add_call().
 */
struct ticket {
	uint64_t id;
	uint64_t after;
	uint64_t generation;
	const struct rsb_call_opts *opts; /* may be NULL */
};

static int
take_ticket(struct rsb_link *link, uint32_t op, const struct rsb_call_opts *opts,
	struct ticket *ret_ticket)
{
	uint64_t after = opts ? opts->after : 0;
	int r;

	rsb_mutex_lock(&link->lock);
	r = refused(link, op, opts);
	if (r == 0) {
		ret_ticket->id = opts && opts->call ? opts->call : link->next_call++;
		/* a number of an earlier session would be waited for without end */
		ret_ticket->after = rsb_min(after, link->fifo);
		ret_ticket->generation = link->generation;
		ret_ticket->opts = opts;
	}
	rsb_mutex_unlock(&link->lock);
	return r;
}

/* -ESTALE: the session changed; take a new ticket. On 0 call is the table's. */
static int
add_call(struct rsb_link *link, const struct ticket *ticket, struct rsb_pending_call *call,
	struct rsb_bytes msg)
{
	uint32_t flags = rsb_ops[call->op].flags;
	const struct rsb_call_opts *opts = ticket->opts;
	bool counts = flags & RSB_OP_WRITES && !(opts && opts->again);
	bool ordered = flags & (RSB_OP_WRITES | RSB_OP_ORDERED) || ticket->after;
	int r;

	rsb_mutex_lock(&link->lock);
	r = refused(link, call->op, opts);
	if (r == 0 && link->generation != ticket->generation)
		r = -ESTALE;
	if (r == 0)
		r = rsb_pending_add(&link->pending, call);
	if (r == 0) {
		/* What waits for a mutation must not overtake it: its reply's space would be held
		 * against the very mutation that it waits for. */
		r = rsb_outbox_message(
			&link->outbox, ordered ? RSB_CLASS_FIFO : RSB_CLASS_READ, msg);
		if (r < 0)
			(void)rsb_pending_take(&link->pending, call->id); /* just added */
	}
	if (r == 0) {
		if (counts)
			link->fifo++;
		if (link->saved)
			link->saved->fifo = link->fifo;
		link->stats.calls++;
	}
	rsb_mutex_unlock(&link->lock);
	return r;
}

/* Once it is added, which *ret_id is set before, call is the link's. */
static int
try_call(struct rsb_link *link, const void *req, const struct rsb_call_opts *opts,
	struct rsb_pending_call *call, uint64_t *ret_id)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf msg = { .max = RSB_MESSAGE_MAX };
	struct ticket ticket = { 0 };
	int r;

	r = take_ticket(link, call->op, opts, &ticket);
	if (r < 0)
		return r;
	*ret_id = call->id = ticket.id;
	call->revives = opts && opts->revives;
	if (opts && opts->timeout_ns)
		call->deadline_ns = rsb_now_ns() + opts->timeout_ns;
	r = rsb_codec_request(call->op, ticket.id, ticket.after, req, RSB_PROTO_VERSION, &msg);
	if (r < 0)
		return r;
	return add_call(link, &ticket, call, rsb_buf_view(&msg));
}

int
rsb_link_call(struct rsb_link *link, uint32_t op, const void *req, const struct rsb_call_opts *opts,
	struct rsb_call_done done, uint64_t *ret_call)
{
	rsb_autofree struct rsb_pending_call *call = NULL;
	uint64_t id = 0;
	int r;

	assert(op <= RSB_OP_NUMBER_MAX && rsb_ops[op].name);
	if (rsb_ops[op].flags & RSB_OP_LOCAL)
		return -EOPNOTSUPP;
	call = rsb_new(struct rsb_pending_call);
	if (!call)
		return -ENOMEM;
	call->op = op;
	call->fn = done.fn;
	call->arg = done.arg;
	do
		r = try_call(link, req, opts, call, &id);
	while (r == -ESTALE);
	if (r < 0)
		return r;
	/* it may have been answered and freed already */
	(void)rsb_steal(&call);
	if (ret_call)
		*ret_call = id;
	wake(link);
	return 0;
}

void
rsb_link_cancel(struct rsb_link *link, uint64_t call)
{
	rsb_recall_wish(link, call, RSB_PENDING_CANCEL, -EINTR);
}

void
rsb_link_withdraw(struct rsb_link *link, uint64_t call)
{
	rsb_recall_wish(link, call, RSB_PENDING_WITHDRAW, -ECANCELED);
}

uint64_t
rsb_link_new_call(struct rsb_link *link)
{
	uint64_t call;

	rsb_mutex_lock(&link->lock);
	call = link->next_call++;
	if (link->saved)
		link->saved->next_call = link->next_call;
	rsb_mutex_unlock(&link->lock);
	return call;
}

uint64_t
rsb_link_fifo(struct rsb_link *link)
{
	uint64_t fifo;

	rsb_mutex_lock(&link->lock);
	fifo = link->fifo;
	rsb_mutex_unlock(&link->lock);
	return fifo;
}

uint64_t
rsb_link_new_ids(struct rsb_link *link, uint64_t n)
{
	uint64_t first;

	rsb_mutex_lock(&link->lock);
	first = link->next_id;
	link->next_id += n;
	if (link->saved)
		link->saved->next_id = link->next_id;
	rsb_mutex_unlock(&link->lock);
	return first;
}
