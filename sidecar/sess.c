/* SPDX-License-Identifier: MIT */
#include "sidecar/sess.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/codec.h"
#include "sidecar/dispatch.h"
#include "sidecar/fh.h"
#include "sidecar/journal.h"
#include "sidecar/lock.h"
#include "sidecar/node.h"
#include "sidecar/proc.h"
#include "sidecar/request.h"
#include "sidecar/revival.h"
#include "sidecar/worker.h"
#include "util/cleanup.h"

/* Intervals of the host's pings without a frame before its connection counts as dead. */
#define SILENT_MAX 10u
/* Requests under way, and replies. */
#define KNOWN_MAX (RSB_CALLS_MAX + RSB_SIDECAR_SEND_MAX / RSB_STREAM_COST)

static void
chan_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct rsb_sess *sess = arg;
	struct rsb_chan_user *user = rsb_map_get(&sess->chan_users, chan);

	if (user)
		user->data(user, data, fin);
}

static void
chan_writable(void *arg, uint64_t chan)
{
	struct rsb_sess *sess = arg;
	struct rsb_chan_user *user = rsb_map_get(&sess->chan_users, chan);

	if (user)
		user->writable(user);
}

static void
chan_reset(void *arg, uint64_t chan, int r)
{
	struct rsb_sess *sess = arg;
	struct rsb_chan_user *user = rsb_map_del(&sess->chan_users, chan);

	if (user)
		user->reset(user, r);
}

static const struct rsb_chan_ops chan_ops = {
	.data = chan_data,
	.writable = chan_writable,
	.reset = chan_reset,
};

static void
kick(struct rsb_task *task)
{
	struct rsb_sess *sess = rsb_container_of(task, struct rsb_sess, kick);

	if (sess->carrier)
		sess->carrier->output(sess->carrier->arg);
}

static void
free_sess(struct rsb_sess *sess)
{
	if (!sess)
		return;
	rsb_loop_unpost(sess->loop, &sess->kick);
	rsb_workers_free(sess->mutator);
	if (sess->part)
		rsb_journal_hold(sess->part, false);
	rsb_revival_free(sess->revival);
	rsb_procs_free(sess->procs);
	rsb_locks_free(sess->locks);
	rsb_fhs_free(sess->fhs);
	rsb_nodes_free(sess->nodes);
	rsb_session_free(sess->proto);
	rsb_map_done(&sess->calls);
	rsb_map_done(&sess->known);
	rsb_map_done(&sess->chan_users);
	rsb_mutex_done(&sess->lock);
	free(sess);
}

static int
make_parts(struct rsb_sess *sess, uint64_t ping_ns)
{
	const struct rsb_session_config config = {
		.send_max = RSB_SIDECAR_SEND_MAX,
		.window = RSB_SIDECAR_WINDOW,
		.ping_ns = ping_ns,
		.silent_max = SILENT_MAX,
		.chan_ops = &chan_ops,
		.chan_arg = sess,
	};
	int r;

	r = rsb_session_new(&config, &sess->proto);
	if (r < 0)
		return r;
	r = rsb_workers_new("rsb-mutator", 1, rsb_dispatch_run, &sess->mutator);
	if (r < 0)
		return r;
	r = rsb_nodes_new(sess->config, &sess->nodes);
	if (r < 0)
		return r;
	r = rsb_fhs_new(&sess->fhs);
	if (r < 0)
		return r;
	r = rsb_locks_new(&sess->locks);
	if (r < 0)
		return r;
	return rsb_procs_new(sess, &sess->procs);
}

int
rsb_sess_new(const struct rsb_sidecar_config *config, struct rsb_loop *loop,
	struct rsb_workers *pool, uint64_t ping_ns, struct rsb_sess **ret_sess)
{
	struct rsb_sess *sess = rsb_new(struct rsb_sess);
	int r;

	if (!sess)
		return -ENOMEM;
	sess->config = config;
	sess->loop = loop;
	sess->pool = pool;
	sess->kick.fn = kick;
	rsb_mutex_init(&sess->lock);
	rsb_map_init(&sess->calls, RSB_CALLS_MAX);
	rsb_map_init(&sess->known, KNOWN_MAX);
	rsb_map_init(&sess->chan_users, RSB_CHANS_MAX);
	rsb_list_init(&sess->after);
	r = make_parts(sess, ping_ns);
	if (r < 0) {
		free_sess(sess);
		return r;
	}
	*ret_sess = sess;
	return 0;
}

void
rsb_sess_check_end(struct rsb_sess *sess)
{
	void (*ended)(void *) = sess->ended;
	void *arg = sess->ended_arg;

	if (!sess->ending || !sess->procs_gone || sess->calls.n > 0)
		return;
	free_sess(sess);
	ended(arg);
}

static void
procs_gone(void *arg)
{
	struct rsb_sess *sess = arg;

	sess->procs_gone = true;
	rsb_sess_check_end(sess);
}

void
rsb_sess_end(struct rsb_sess *sess, void (*ended)(void *arg), void *arg)
{
	struct rsb_carrier *carrier = rsb_steal(&sess->carrier);
	struct rsb_request *rq;
	size_t cursor = 0;
	uint64_t id;

	sess->ending = true;
	sess->ended = ended;
	sess->ended_arg = arg;
	if (carrier) {
		rsb_session_detach(sess->proto);
		carrier->lost(carrier->arg, -ECONNABORTED);
	}
	/* Replies only post a task, so the map stands still meanwhile. */
	while ((rq = rsb_map_next(&sess->calls, &cursor, &id)))
		rsb_request_cancel(rq);
	rsb_procs_end(sess->procs, procs_gone, sess);
}

int
rsb_sess_attach(struct rsb_sess *sess, struct rsb_carrier *carrier, uint32_t version,
	const struct rsb_stream_state *peer, struct rsb_zip *zip)
{
	struct rsb_carrier *old = rsb_steal(&sess->carrier);
	int r;

	if (old) {
		rsb_session_detach(sess->proto);
		old->lost(old->arg, -ECONNABORTED);
	}
	r = rsb_session_attach(sess->proto, rsb_loop_now(sess->loop), peer, zip);
	if (r < 0)
		return r;
	sess->version = version;
	sess->carrier = carrier;
	return 0;
}

/* ---- another process of the host ---- */

static void
note_known(struct rsb_sess *sess, uint64_t call)
{
	/* Without memory for the note the call might be executed twice. */
	if (rsb_map_put(&sess->known, call, sess) < 0)
		sess->broken = true;
}

static void
note_answered(void *arg, struct rsb_bytes msg)
{
	struct rsb_sess *sess = arg;
	struct rsb_call_head head;

	if (rsb_codec_head(msg, &head) < 0)
		sess->broken = true;
	else
		note_known(sess, head.id);
}

int
rsb_sess_restart(struct rsb_sess *sess, uint64_t incarnation)
{
	struct rsb_carrier *carrier = rsb_steal(&sess->carrier);
	struct rsb_chan_user *user;
	size_t cursor = 0;
	uint64_t chan;
	uint64_t call;
	int r;

	if (carrier)
		carrier->lost(carrier->arg, -ECONNABORTED);
	while ((user = rsb_map_next(&sess->chan_users, &cursor, &chan))) {
		(void)rsb_map_del(&sess->chan_users, chan);
		user->reset(user, -EOWNERDEAD);
		/* It may have closed others. */
		cursor = 0;
	}
	rsb_map_done(&sess->known);
	rsb_map_init(&sess->known, KNOWN_MAX);
	/* They may have ended before they are called again. */
	cursor = 0;
	while (rsb_map_next(&sess->calls, &cursor, &call))
		note_known(sess, call);
	r = rsb_session_restart(sess->proto, note_answered, sess);
	if (r < 0)
		sess->broken = true;
	sess->incarnation = incarnation;
	sess->detached_ns = rsb_loop_now(sess->loop);
	return sess->broken ? -ENOMEM : 0;
}

int
rsb_sess_revive(struct rsb_sess *sess, struct rsb_journal_part *part, uint64_t first_call)
{
	uint64_t begun = rsb_journal_begun(part);
	int r = rsb_revival_new(begun, first_call, &sess->revival);

	if (r < 0)
		return r;
	sess->part = part;
	rsb_journal_hold(part, true);
	sess->fifo_seen = begun;
	sess->fifo_done = begun;
	return 0;
}

bool
rsb_sess_knows_call(struct rsb_sess *sess, uint64_t call)
{
	return rsb_map_del(&sess->known, call) || rsb_map_get(&sess->calls, call);
}

void
rsb_sess_detach(struct rsb_sess *sess, struct rsb_carrier *carrier)
{
	if (sess->carrier != carrier)
		return;
	rsb_session_detach(sess->proto);
	sess->carrier = NULL;
	sess->n_away = 0;
	sess->detached_ns = rsb_loop_now(sess->loop);
}

void
rsb_sess_kick(struct rsb_sess *sess)
{
	rsb_loop_post(sess->loop, &sess->kick);
}

void
rsb_sess_fail(struct rsb_sess *sess, int r)
{
	struct rsb_carrier *carrier = rsb_steal(&sess->carrier);

	sess->broken = true;
	sess->n_away = 0;
	sess->detached_ns = rsb_loop_now(sess->loop);
	if (!carrier)
		return;
	rsb_session_detach(sess->proto);
	carrier->lost(carrier->arg, r);
}

int
rsb_sess_chan_open_receiver(
	struct rsb_sess *sess, uint64_t chan, size_t window_max, struct rsb_chan_user *user)
{
	struct rsb_chans *chans = rsb_session_chans(sess->proto);
	int r;

	r = rsb_chan_open_receiver(chans, chan, window_max);
	if (r < 0)
		return r;
	r = rsb_map_put(&sess->chan_users, chan, user);
	if (r < 0)
		rsb_chan_close(chans, chan);
	return r;
}

int
rsb_sess_chan_open_sender(
	struct rsb_sess *sess, uint64_t chan, size_t buffer_max, struct rsb_chan_user *user)
{
	struct rsb_chans *chans = rsb_session_chans(sess->proto);
	int r;

	r = rsb_chan_open_sender(chans, chan, buffer_max);
	if (r < 0)
		return r;
	r = rsb_map_put(&sess->chan_users, chan, user);
	if (r < 0)
		rsb_chan_close(chans, chan);
	return r;
}

void
rsb_sess_chan_close(struct rsb_sess *sess, uint64_t chan, int r)
{
	struct rsb_chans *chans = rsb_session_chans(sess->proto);

	if (!rsb_map_del(&sess->chan_users, chan))
		return;
	if (r < 0)
		rsb_chan_reset(chans, chan, r);
	else
		rsb_chan_close(chans, chan);
	rsb_sess_kick(sess);
}
