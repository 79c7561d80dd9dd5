/* SPDX-License-Identifier: MIT */
#include "tests/unit/near.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/codec.h"
#include "proto/session.h"
#include "proto/version.h"
#include "sidecar/cgroup.h"
#include "sidecar/dispatch.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/str.h"

static void
host_data(void *arg, uint64_t id, struct rsb_bytes data, bool fin)
{
	struct near *near = arg;
	struct near_chan *chan = rsb_map_get(&near->chans, id);

	ck_assert_ptr_nonnull(chan);
	ck_assert(!chan->fin);
	ck_assert_int_eq(rsb_buf_append(&chan->data, data.data, data.size), 0);
	chan->size += data.size;
	chan->fin = fin;
	if (!chan->hold)
		rsb_chan_consume(rsb_session_chans(near->host), id, data.size);
}

static void
host_writable(void *arg rsb_unused, uint64_t id rsb_unused)
{
}

static void
host_reset(void *arg, uint64_t id, int r)
{
	struct near *near = arg;
	struct near_chan *chan = rsb_map_get(&near->chans, id);

	ck_assert_ptr_nonnull(chan);
	chan->reset = r;
}

static const struct rsb_chan_ops host_ops = {
	.data = host_data,
	.writable = host_writable,
	.reset = host_reset,
};

static void
carrier_output(void *arg rsb_unused)
{
	/* near_step() looks anyway. */
}

static void
carrier_lost(void *arg, int r rsb_unused)
{
	struct near *near = arg;

	near->lost = true;
}

static void
attach(struct near *near)
{
	uint64_t now_ns = rsb_loop_now(near->loop);
	struct rsb_stream_state host, sidecar;

	rsb_stream_state(rsb_session_stream(near->host), &host);
	ck_assert_int_eq(
		rsb_sess_attach(near->sess, &near->carrier, RSB_PROTO_VERSION, &host, NULL), 0);
	rsb_stream_state(rsb_session_stream(near->sess->proto), &sidecar);
	ck_assert_int_eq(rsb_session_attach(near->host, now_ns, &sidecar, NULL), 0);
}

static void
make_config(struct near *near, bool cgroups)
{
	static const gid_t groups[] = { 0 };
	struct rlimit limit;

	(void)snprintf(near->workspace, sizeof(near->workspace), "/tmp/rsb-near-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(near->workspace));
	near->config = (struct rsb_sidecar_config){
		.root_fd = open(near->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.workspace = near->workspace,
		.cmd_uid = getuid(),
		.cmd_gid = getgid(),
		.cmd_groups = groups,
		.n_cmd_groups = 1,
		.cmd_user = "tester",
		.cmd_home = "/tmp",
		.cmd_shell = "/bin/sh",
		.is_root = getuid() == 0,
	};
	ck_assert_int_ge(near->config.root_fd, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	near->config.cmd_nofile = limit;
	/* As sidecar/main.c does: a login gives 1024, which 200 commands at once come to. */
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (cgroups)
		(void)rsb_cgroups_new(&near->config.cgroups); /* else the other rung */
}

static void
make_host(struct near *near)
{
	const struct rsb_session_config config = {
		.send_max = RSB_HOST_SEND_MAX,
		.window = RSB_HOST_WINDOW,
		.ping_ns = RSB_NSEC_PER_SEC,
		.silent_max = 100,
		.chan_ops = &host_ops,
		.chan_arg = near,
	};

	ck_assert_int_eq(rsb_session_new(&config, &near->host), 0);
}

struct near *
near_new(bool cgroups)
{
	struct near *near = rsb_new(struct near);

	ck_assert_ptr_nonnull(near);
	rsb_log_init("test", RSB_LOG_WARN, 2);
	ck_assert_ptr_ne(signal(SIGPIPE, SIG_IGN), SIG_ERR);
	make_config(near, cgroups);
	near->next_proc = 1;
	near->carrier = (struct rsb_carrier){
		.output = carrier_output,
		.lost = carrier_lost,
		.arg = near,
	};
	rsb_map_init(&near->chans, NEAR_CHANS_MAX);
	ck_assert_int_eq(rsb_loop_new(rsb_clock_monotonic(), &near->loop), 0);
	ck_assert_int_eq(rsb_workers_new("pool", 4, rsb_dispatch_run, &near->pool), 0);
	ck_assert_int_eq(
		rsb_sess_new(&near->config, near->loop, near->pool, RSB_NSEC_PER_SEC, &near->sess),
		0);
	make_host(near);
	attach(near);
	return near;
}

static void
ended(void *arg)
{
	struct near *near = arg;

	near->ended = true;
}

static void
free_chans(struct near *near)
{
	struct near_chan *chan;
	size_t cursor = 0;
	uint64_t id;

	while ((chan = rsb_map_next(&near->chans, &cursor, &id))) {
		rsb_buf_done(&chan->data);
		free(chan);
	}
	rsb_map_done(&near->chans);
}

void
near_free(struct near *near)
{
	uint64_t deadline_ns = rsb_now_ns() + NEAR_WAIT_NS;

	rsb_sess_end(near->sess, ended, near);
	while (!near->ended) {
		ck_assert(rsb_now_ns() < deadline_ns);
		ck_assert_int_eq(rsb_loop_step(near->loop, 10), 0);
	}
	rsb_workers_free(near->pool);
	rsb_loop_free(near->loop);
	rsb_cgroups_free(near->config.cgroups);
	rsb_session_free(near->host);
	free_chans(near);
	for (size_t i = 0; i < NEAR_CALLS_MAX; i++) {
		free(near->calls[i].msg);
		rsb_buf_done(&near->calls[i].req);
	}
	(void)close(near->config.root_fd);
	unit_remove_tree(near->workspace);
	free(near);
}

/* ---- frames ---- */

static void
take_replies(struct near *near)
{
	struct rsb_stream *stream = rsb_session_stream(near->host);
	struct rsb_call_head head;
	struct rsb_msg *msg;

	while ((msg = rsb_stream_take(stream))) {
		struct near_call *call;

		ck_assert_int_eq(
			rsb_codec_head((struct rsb_bytes){ msg->data, msg->size }, &head), 0);
		ck_assert_uint_eq(head.op, 0);
		ck_assert_uint_le(head.id, near->n_call);
		call = &near->calls[head.id];
		if (call->done) {
			near->n_double++;
			free(msg);
			continue;
		}
		call->done = true;
		call->error = head.error;
		call->msg = msg;
		call->body = head.body;
		rsb_buf_done(&call->req);
	}
}

/* One frame from one end to the other: 1; 0: there is none. */
static int
move(struct near *near, struct rsb_session *from, struct rsb_session *to)
{
	uint64_t now_ns = rsb_loop_now(near->loop);
	struct rsb_buf frame;
	int r;

	rsb_buf_init(&frame, 2 * RSB_FRAME_MAX);
	r = rsb_session_output(from, now_ns, &frame);
	ck_assert_int_ge(r, 0);
	if (r > 0 && near->cut_after && --near->cut_after == 0) {
		near->n_cut++;
		near_cut(near); /* and this frame is lost */
	} else if (r > 0 && near->crash_after && --near->crash_after == 0) {
		near->n_crash++;
		near_crash(near);
	} else if (r > 0) {
		ck_assert_int_eq(rsb_session_input(to, now_ns, rsb_buf_view(&frame)), 0);
	}
	rsb_buf_done(&frame);
	return r;
}

void
near_cut(struct near *near)
{
	rsb_session_detach(near->host);
	rsb_sess_detach(near->sess, &near->carrier);
	attach(near);
}

static void
send_call(struct near *near, const struct near_call *call)
{
	enum rsb_class class =
		rsb_ops[call->op].flags & RSB_OP_WRITES ? RSB_CLASS_FIFO : RSB_CLASS_READ;

	ck_assert_int_eq(
		rsb_stream_send(rsb_session_stream(near->host), class, rsb_buf_view(&call->req)),
		0);
}

void
near_crash(struct near *near)
{
	rsb_session_free(near->host);
	free_chans(near);
	rsb_map_init(&near->chans, NEAR_CHANS_MAX);
	make_host(near);
	ck_assert_int_eq(rsb_sess_restart(near->sess, near->sess->incarnation + 1), 0);
	near->lost = false;
	while (near->crash_slow && near->sess->fifo_done < near->sess->fifo_seen)
		ck_assert_int_eq(rsb_loop_step(near->loop, 10), 0);
	attach(near);
	for (uint64_t id = 1; id <= near->n_call; id++) {
		if (!near->calls[id].done)
			send_call(near, &near->calls[id]);
	}
}

void
near_pump(struct near *near)
{
	int moved;

	do {
		moved = move(near, near->host, near->sess->proto);
		rsb_dispatch_pump(near->sess);
		if (near->lost)
			return;
		if (!near->deaf)
			moved += move(near, near->sess->proto, near->host);
		take_replies(near);
	} while (moved > 0);
}

void
near_step(struct near *near, int timeout_ms)
{
	uint64_t now_ns = rsb_loop_now(near->loop);

	near_pump(near);
	ck_assert(!near->lost);
	ck_assert_int_eq(rsb_session_tick(near->host, now_ns), 0);
	/* What it is not told is no fault of the host's, however slow a sanitizer makes this. */
	if (!near->deaf)
		ck_assert_int_eq(rsb_session_tick(near->sess->proto, now_ns), 0);
	ck_assert_int_eq(rsb_loop_step(near->loop, timeout_ms), 0);
}

/* ---- calls ---- */

uint64_t
near_call(struct near *near, uint32_t op, const void *req, uint64_t after)
{
	uint64_t id = ++near->n_call;
	struct near_call *call = &near->calls[id];

	ck_assert_uint_lt(id, NEAR_CALLS_MAX);
	rsb_buf_init(&call->req, RSB_MESSAGE_MAX);
	call->op = op;
	ck_assert_int_eq(rsb_codec_request(op, id, after, req, RSB_PROTO_VERSION, &call->req), 0);
	send_call(near, call);
	return id;
}

int
near_reply(struct near *near, uint64_t id, void *ret_rep)
{
	struct near_call *call = &near->calls[id];

	near_until(near, call->done);
	if (call->error == 0 && ret_rep)
		ck_assert_int_eq(rsb_codec_decode(rsb_ops[call->op].rep, call->body, ret_rep), 0);
	return call->error;
}

int
near_do(struct near *near, uint32_t op, const void *req, void *ret_rep)
{
	return near_reply(near, near_call(near, op, req, 0), ret_rep);
}

/* ---- streams ---- */

struct near_chan *
near_chan(struct near *near, uint64_t id)
{
	struct rsb_chans *chans = rsb_session_chans(near->host);
	struct near_chan *chan = rsb_map_get(&near->chans, id);

	if (chan)
		return chan;
	chan = rsb_new(struct near_chan);
	ck_assert_ptr_nonnull(chan);
	chan->chan = id;
	rsb_buf_init(&chan->data, (size_t)1 << 30);
	ck_assert_int_eq(rsb_map_put(&near->chans, id, chan), 0);
	if (id % 4 == 0)
		ck_assert_int_eq(rsb_chan_open_sender(chans, id, 1 << 20), 0);
	else
		ck_assert_int_eq(rsb_chan_open_receiver(chans, id, RSB_CHAN_WINDOW_MAX), 0);
	return chan;
}

int
near_send(struct near *near, uint64_t id, const void *data, size_t size, bool fin)
{
	struct rsb_chans *chans = rsb_session_chans(near->host);
	struct near_chan *chan = near_chan(near, id);
	struct rsb_bytes rest = { .data = data, .size = size };

	near_until(near, ({
		int n = chan->reset ? 0 : rsb_chan_write(chans, id, rest);

		ck_assert_int_ge(n, 0);
		rest.data += n;
		rest.size -= (size_t)n;
		chan->reset || rest.size == 0;
	}));
	if (chan->reset)
		return chan->reset;
	return fin ? rsb_chan_finish(chans, id) : 0;
}
