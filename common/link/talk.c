/* SPDX-License-Identifier: MIT */
#include "link/talk.h"

#include <errno.h>
#include <string.h>

#include "link/anew.h"
#include "link/core.h"
#include "proto/codec.h"
#include "proto/handshake.h"
#include "proto/version.h"

#define RSB_LOG_MODULE "link"
#include "util/log.h"

/* ---- sessions ---- */

static void
on_chan_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct rsb_link *link = arg;

	if (link->ops->chan_data)
		link->ops->chan_data(link->arg, chan, data, fin);
}

/* The outbox knows who waits for room: it never lets a write come short in the session. */
static void
on_chan_writable(void *arg, uint64_t chan)
{
	(void)arg;
	(void)chan;
}

static void
on_chan_reset(void *arg, uint64_t chan, int r)
{
	struct rsb_link *link = arg;

	rsb_mutex_lock(&link->lock);
	rsb_outbox_forget(&link->outbox, chan);
	rsb_mutex_unlock(&link->lock);
	if (link->ops->chan_reset)
		link->ops->chan_reset(link->arg, chan, r);
}

static const struct rsb_chan_ops chan_ops = {
	.data = on_chan_data,
	.writable = on_chan_writable,
	.reset = on_chan_reset,
};

int
rsb_talk_new_session(struct rsb_link *link, struct rsb_session **ret_session)
{
	const struct rsb_session_config config = {
		.send_max = RSB_HOST_SEND_MAX,
		.window = RSB_HOST_WINDOW,
		.ping_ns = link->ping_ns,
		.silent_max = RSB_PING_LOST_MAX,
		.missed_max = RSB_PING_MISSED_MAX,
		.chan_ops = &chan_ops,
		.chan_arg = link,
	};

	return rsb_session_new(&config, ret_session);
}

void
rsb_talk_end_list(struct rsb_list *calls, int r)
{
	struct rsb_pending_call *call;
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, calls) {
		call = rsb_list_entry(pos, struct rsb_pending_call, node);
		if (call->fn)
			call->fn(call->arg, r, NULL);
		free(call);
	}
	rsb_list_init(calls);
}

void
rsb_talk_end_calls(struct rsb_link *link, int r)
{
	struct rsb_list calls;

	rsb_list_init(&calls);
	rsb_mutex_lock(&link->lock);
	rsb_pending_take_all(&link->pending, &calls);
	rsb_mutex_unlock(&link->lock);
	rsb_talk_end_list(&calls, r);
}

void
rsb_talk_take_all(struct rsb_link *link, struct rsb_list *calls, struct rsb_map *ret_lanes)
{
	rsb_pending_take_all(&link->pending, calls);
	rsb_outbox_cut(&link->outbox, ret_lanes);
	link->outbox.space = rsb_stream_space(rsb_session_stream(link->session));
}

void
rsb_talk_reset_chans(struct rsb_link *link, struct rsb_map *lanes, int r)
{
	uint64_t chan;

	while (rsb_outbox_next_cut(lanes, &chan))
		if (link->ops->chan_reset)
			link->ops->chan_reset(link->arg, chan, r);
}

/*
 * Another session from now on; everything of the old one ends with -ENOTCONN. Without memory
 * for a new one the old object goes on under the new id, which is as good: the peer refuses
 * it, and this is called again.
 */
void
rsb_talk_lose_session(struct rsb_link *link)
{
	struct rsb_session *fresh = NULL;
	struct rsb_list calls;
	struct rsb_map lanes;

	rsb_list_init(&calls);
	if (link->saved)
		link->saved->welcomed = link->saved->reviving = 0;
	if (rsb_random(link->session_id, sizeof(link->session_id)) < 0)
		link->session_id[0]++;
	if (rsb_talk_new_session(link, &fresh) == 0) {
		rsb_session_free(link->session);
		link->session = fresh;
	}
	link->welcomed = false;
	link->poisoned = false;
	link->epoch_size = 0;
	/* one critical section, so that no call is queued behind what is dropped here */
	rsb_mutex_lock(&link->lock);
	link->generation++;
	link->gated = false;
	link->fifo = 0;
	if (link->saved)
		link->saved->fifo = link->saved->fifo_done = 0;
	rsb_talk_take_all(link, &calls, &lanes);
	rsb_mutex_unlock(&link->lock);
	rsb_talk_end_list(&calls, -ENOTCONN);
	rsb_talk_reset_chans(link, &lanes, -ENOTCONN);
}

/* ---- connections ---- */

void
rsb_talk_set_state(struct rsb_link *link, enum rsb_link_state state, int reason, bool new_epoch)
{
	rsb_mutex_lock(&link->lock);
	link->state = state;
	rsb_mutex_unlock(&link->lock);
	if (link->ops->state)
		link->ops->state(link->arg, state, reason, new_epoch);
}

enum rsb_link_state
rsb_talk_up(struct rsb_link *link)
{
	bool gated;

	rsb_mutex_lock(&link->lock);
	gated = link->gated;
	rsb_mutex_unlock(&link->lock);
	return gated ? RSB_LINK_RESYNC : RSB_LINK_LIVE;
}

void
rsb_talk_set_why(struct rsb_link *link, const char *text)
{
	rsb_mutex_lock(&link->lock);
	(void)rsb_diag_set(&link->why, 0, "%s", text);
	rsb_mutex_unlock(&link->lock);
}

void
rsb_talk_count(struct rsb_link *link)
{
	struct rsb_wire_stats stats;

	if (!link->wire)
		return;
	rsb_wire_stats(link->wire, &stats);
	rsb_mutex_lock(&link->lock);
	link->stats.bytes_in += stats.bytes_in;
	link->stats.bytes_out += stats.bytes_out;
	link->stats.frames_in += stats.frames_in;
	link->stats.frames_out += stats.frames_out;
	rsb_mutex_unlock(&link->lock);
}

void
rsb_talk_lost(struct rsb_link *link, int r)
{
	bool new_epoch = r == -ESTALE || link->poisoned;

	link->suspect = false;
	rsb_dbg_r(r, "connection ended");
	rsb_talk_count(link);
	rsb_wire_free(rsb_steal(&link->wire));
	if (rsb_session_attached(link->session))
		rsb_session_detach(link->session);
	rsb_zip_free(rsb_steal(&link->zip));
	if (new_epoch)
		rsb_talk_lose_session(link);
	if (!link->stopping)
		rsb_talk_set_state(link, RSB_LINK_DOWN, r, new_epoch);
}

static void
on_hello(void *arg, struct rsb_hello *hello)
{
	struct rsb_link *link = arg;
	struct rsb_stream_state state;

	rsb_stream_state(rsb_session_stream(link->session), &state);
	hello->sandbox_id = rsb_bytes_str(link->sandbox_id);
	hello->client_id = (struct rsb_bytes){ link->client_id, sizeof(link->client_id) };
	hello->session_id = (struct rsb_bytes){ link->session_id, sizeof(link->session_id) };
	hello->epoch = (struct rsb_bytes){ (const uint8_t *)link->epoch, link->epoch_size };
	hello->received = state.received;
	hello->acked = state.acked;
	hello->window = state.limit;
	hello->digest = state.digest;
	hello->ping_ms = link->ping_ns / RSB_NSEC_PER_MSEC;
	if (!link->saved)
		return;
	rsb_mutex_lock(&link->lock);
	hello->incarnation = link->saved->incarnation;
	hello->fifo = link->fifo;
	hello->fifo_done = link->saved->fifo_done;
	hello->calls = link->ops->anew ? link->next_call : 0;
	rsb_mutex_unlock(&link->lock);
}

static void
copy_text(char *out, size_t size, struct rsb_bytes text)
{
	size_t n = rsb_min(text.size, size - 1);

	if (n)
		memcpy(out, text.data, n);
	out[n] = '\0';
}

static void
take_facts(struct rsb_link *link, const struct rsb_welcome *welcome)
{
	struct rsb_link_facts facts = {
		.uid = welcome->uid,
		.cmd_uid = welcome->cmd_uid,
		.cmd_gid = welcome->cmd_gid,
		.kill_rung = welcome->kill_rung,
		.landlock_abi = welcome->landlock_abi,
		.clock_ns = (int64_t)(welcome->wall_sec * RSB_NSEC_PER_SEC + welcome->wall_nsec -
				      rsb_boot_ns()),
	};

	copy_text(facts.epoch, sizeof(facts.epoch), welcome->epoch);
	copy_text(facts.boot_id, sizeof(facts.boot_id), welcome->boot_id);
	copy_text(facts.workspace, sizeof(facts.workspace), welcome->workspace);
	rsb_mutex_lock(&link->lock);
	link->facts = facts;
	link->stats.reconnects += link->has_facts ? 1 : 0;
	link->has_facts = true;
	rsb_mutex_unlock(&link->lock);
}

/* Killed in the middle of it the next process is to know one or the other. */
static void
save_epoch(struct rsb_link *link)
{
	struct rsb_link_saved *saved = link->saved;
	uint64_t other = 1 - (saved->epoch_at & 1);

	if (memcmp(saved->epochs[saved->epoch_at & 1], link->epoch, sizeof(link->epoch)) == 0)
		return;
	memcpy(saved->epochs[other], link->epoch, sizeof(link->epoch));
	__atomic_store_n(&saved->epoch_at, other, __ATOMIC_RELEASE);
}

/* From here on a later process can go on with the session. */
static void
save(struct rsb_link *link)
{
	struct rsb_link_saved *saved = link->saved;

	if (!saved)
		return;
	saved->facts = link->facts;
	memcpy(saved->client_id, link->client_id, sizeof(saved->client_id));
	memcpy(saved->session_id, link->session_id, sizeof(saved->session_id));
	save_epoch(link);
	__atomic_store_n(&saved->welcomed, 1, __ATOMIC_RELEASE);
}

/* Who had them is to know before he is told anything that was said after it. */
static void
check_locks(struct rsb_link *link, const struct rsb_welcome *welcome)
{
	struct rsb_link_saved *saved = link->saved;

	if (!saved || saved->lock_losses == welcome->lock_losses)
		return;
	if (welcome->resumed && link->ops->locks_lost)
		link->ops->locks_lost(link->arg);
	saved->lock_losses = welcome->lock_losses;
}

static int
on_open(void *arg, const struct rsb_welcome *welcome, uint64_t features)
{
	struct rsb_link *link = arg;
	const struct rsb_stream_state peer = {
		.received = welcome->received,
		.acked = welcome->acked,
		.limit = welcome->window,
		.digest = welcome->digest,
	};
	bool anew = rsb_anew_begins(link, welcome);
	int r;

	/*
	 * The session is not known there (any more). What hello said of it would be wrong for a
	 * fresh one, so that begins with a connection of its own.
	 */
	if (link->welcomed && !welcome->resumed && !anew)
		return -ESTALE;
	if (features & RSB_FEATURE_ZSTD) {
		r = rsb_zip_new(&link->zip);
		if (r < 0)
			return r;
	}
	if (anew) {
		r = rsb_anew_cut(link);
		if (r < 0)
			return r;
	}
	r = rsb_session_attach(link->session, rsb_loop_now(link->loop), &peer, link->zip);
	if (r < 0)
		return r;
	link->welcomed = true;
	copy_text(link->epoch, sizeof(link->epoch), welcome->epoch);
	link->epoch_size = rsb_min(welcome->epoch.size, sizeof(link->epoch) - 1);
	take_facts(link, welcome);
	if (anew)
		rsb_anew_save(link, welcome);
	save(link);
	check_locks(link, welcome);
	if (anew)
		rsb_anew_tell(link);
	rsb_talk_set_state(link, rsb_talk_up(link), 0, false);
	return 0;
}

/* ---- messages ---- */

/*
 * The mutations whose replies were taken: the memory over there must know at least as many when a
 * later process goes on with it. After the callback, which may come again if we are killed in it.
 */
static void
count_done(struct rsb_link *link, uint32_t op)
{
	if (link->saved && rsb_ops[op].flags & RSB_OP_WRITES)
		link->saved->fifo_done++;
}

/*
 * A reply to what was handed back with ERESTART comes before it is made again, when the process
 * before us had done so. Else that one asked for it, or the peer made it up.
 */
static int
on_stray(struct rsb_link *link, const struct rsb_call_head *head)
{
	uint32_t op = link->ops->early ? link->ops->early(link->arg, head) : 0;

	if (op) {
		count_done(link, op);
		return 0;
	}
	return head->id < link->first_call ? 0 : -EBADMSG;
}

static int
on_reply(struct rsb_link *link, const struct rsb_call_head *head)
{
	const struct rsb_message_desc *desc;
	struct rsb_pending_call *call;
	int r = head->error;

	rsb_mutex_lock(&link->lock);
	call = rsb_pending_take(&link->pending, head->id);
	if (call && call->fn)
		link->stats.replies++;
	rsb_mutex_unlock(&link->lock);
	if (!call)
		return on_stray(link, head);
	desc = rsb_ops[call->op].rep;
	if (r == 0)
		r = rsb_codec_decode(desc, head->body, link->reply);
	if (call->fn)
		call->fn(call->arg, r < 0 ? r : 0, r < 0 ? NULL : link->reply);
	count_done(link, call->op);
	free(call);
	return 0;
}

static int
on_message(struct rsb_link *link, const struct rsb_msg *msg)
{
	const struct rsb_bytes bytes = { .data = msg->data, .size = msg->size };
	struct rsb_call_head head;
	int r;

	r = rsb_codec_head(bytes, &head);
	if (r < 0) {
		/* whose reply it was nobody will know */
		link->poisoned = true;
		return r;
	}
	if (head.op == 0)
		return on_reply(link, &head);
	rsb_buf_clear(&link->scratch);
	r = rsb_codec_reply(head.op, head.id, -EOPNOTSUPP, NULL, RSB_PROTO_VERSION, &link->scratch);
	if (r < 0)
		return r;
	/* a peer that asks what it cannot need, faster than it reads, gets no answer */
	(void)rsb_stream_send(
		rsb_session_stream(link->session), RSB_CLASS_READ, rsb_buf_view(&link->scratch));
	return 0;
}

static int
on_frame(void *arg, struct rsb_bytes frame)
{
	struct rsb_link *link = arg;
	struct rsb_stream *stream;
	int r;

	r = rsb_session_input(link->session, rsb_loop_now(link->loop), frame);
	if (r < 0)
		return r;
	if (link->suspect) {
		link->suspect = false;
		rsb_talk_set_state(link, rsb_talk_up(link), 0, false);
	}
	stream = rsb_session_stream(link->session);
	while (rsb_stream_peek(stream)) {
		rsb_autofree struct rsb_msg *msg = rsb_stream_take(stream);

		r = on_message(link, msg);
		if (r < 0)
			return r;
	}
	return 0;
}

static void
on_batch(void *arg)
{
	rsb_core_pump(arg);
}

static int
on_fill(void *arg, struct rsb_buf *frame)
{
	struct rsb_link *link = arg;

	return rsb_session_output(link->session, rsb_loop_now(link->loop), frame);
}

static void
on_closed(void *arg, int r, const char *text)
{
	struct rsb_link *link = arg;

	rsb_talk_set_why(link, text);
	rsb_talk_lost(link, r);
	rsb_core_pump(link);
}

const struct rsb_wire_ops rsb_talk_wire_ops = {
	.hello = on_hello,
	.open = on_open,
	.frame = on_frame,
	.batch = on_batch,
	.fill = on_fill,
	.closed = on_closed,
};
