/* SPDX-License-Identifier: MIT */
#include "tests/sim/host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/sim/call.h"
#include "tests/sim/net.h"
#include "tests/sim/node.h"

enum stage { NO_CONN, CHALLENGE, WELCOME, LIVE };

struct proc {
	uint64_t proc;
	bool in_open;
	bool in_finished;
	uint64_t in_written;
	bool out_open;
	uint64_t out_offset;
	size_t out_unconsumed;
};

struct sim_host {
	struct sim_world *world;
	enum stage stage;
	uint64_t conn;
	struct rsb_handshake hs;
	struct rsb_session *session;
	uint64_t session_id;
	bool welcomed;  /* the session is known over there */
	uint64_t epoch; /* of it; 0: none */
	uint64_t fifo;
	uint64_t n_proc; /* numbers given out */
	struct proc procs[SIM_PROCS_MAX];
	struct rsb_buf scratch;
};

uint64_t
sim_host_conn(const struct sim_host *host)
{
	return host->conn;
}

uint64_t
sim_host_session(const struct sim_host *host)
{
	return host->session_id;
}

/* ---- streams ---- */

static struct proc *
proc_get(struct sim_host *host, uint64_t proc)
{
	sim_check(host->world, proc >= 1 && proc <= host->n_proc);
	return &host->procs[proc - 1];
}

static void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct sim_host *host = arg;
	struct proc *proc = proc_get(host, RSB_CHAN_PROC(chan));

	sim_check(host->world, proc->out_open);
	sim_check_bytes(host->world, chan, proc->out_offset, data);
	proc->out_offset += data.size;
	proc->out_unconsumed += data.size;
	sim_check(host->world, proc->out_unconsumed <= RSB_CHAN_WINDOW_MAX);
	if (!fin)
		return;
	sim_check(host->world, proc->out_offset == sim_stream_size(host->world, chan));
	proc->out_open = false;
	rsb_chan_close(rsb_session_chans(host->session), chan);
}

static void
on_writable(void *arg, uint64_t chan)
{
	struct sim_host *host = arg;
	struct rsb_chans *chans = rsb_session_chans(host->session);

	if (!rsb_chan_drained(chans, chan))
		return;
	proc_get(host, RSB_CHAN_PROC(chan))->in_open = false;
	rsb_chan_close(chans, chan);
}

static void
on_reset(void *arg, uint64_t chan, rsb_unused int r)
{
	struct sim_host *host = arg;
	struct proc *proc = proc_get(host, RSB_CHAN_PROC(chan));

	sim_check(host->world, host->world->given_up & UINT64_C(1) << proc->proc);
	if (chan == RSB_CHAN_STDIN(proc->proc))
		proc->in_open = false;
	else
		proc->out_open = false;
}

static const struct rsb_chan_ops chan_ops = {
	.data = on_data,
	.writable = on_writable,
	.reset = on_reset,
};

static void
proc_write(struct sim_host *host, struct proc *proc)
{
	struct rsb_chans *chans = rsb_session_chans(host->session);
	uint64_t chan = RSB_CHAN_STDIN(proc->proc);
	uint64_t size = sim_stream_size(host->world, chan), left = size - proc->in_written;
	size_t n = rng_below(&host->world->rng, 2) ? (size_t)left
						   : rng_below(&host->world->rng, (size_t)left + 1);
	uint8_t *data = sim_bytes(chan, proc->in_written, n);
	int r;

	r = rsb_chan_write(chans, chan, (struct rsb_bytes){ .data = data, .size = n });
	free(data);
	sim_check(host->world, r >= 0);
	proc->in_written += (uint64_t)r;
	if (proc->in_written < size)
		return;
	sim_check(host->world, rsb_chan_finish(chans, chan) == 0);
	proc->in_finished = true;
}

static void
proc_work(struct sim_host *host, struct proc *proc)
{
	struct rsb_chans *chans = rsb_session_chans(host->session);
	struct rng *rng = &host->world->rng;
	size_t size = proc->out_unconsumed;

	if (proc->in_open && !proc->in_finished)
		proc_write(host, proc);
	if (!proc->out_open || (host->world->config.slow && rng_below(rng, 8)))
		return;
	if (rng_below(rng, 2))
		size = rng_below(rng, size + 1);
	rsb_chan_consume(chans, RSB_CHAN_STDOUT(proc->proc), size);
	proc->out_unconsumed -= size;
	if (rng_below(rng, 200) == 0) {
		host->world->given_up |= UINT64_C(1) << proc->proc;
		rsb_chan_reset(chans, RSB_CHAN_STDOUT(proc->proc), -ECANCELED);
		proc->out_open = false;
	} else if (proc->in_open && rng_below(rng, 200) == 0) {
		host->world->given_up |= UINT64_C(1) << proc->proc;
		rsb_chan_reset(chans, RSB_CHAN_STDIN(proc->proc), -ECANCELED);
		proc->in_open = false;
	}
}

/* ---- the session ---- */

static void
begin_session(struct sim_host *host)
{
	const struct sim_config *config = &host->world->config;

	host->session = sim_session_new(
		host->world, config->host_send_max, config->host_window, 3, &chan_ops, host);
	host->session_id = rng_u64(&host->world->rng) | 1;
	host->welcomed = false;
	host->epoch = 0;
	host->fifo = 0;
}

struct sim_host *
sim_host_new(struct sim_world *world)
{
	struct sim_host *host = rsb_new(struct sim_host);

	if (!host)
		abort();
	host->world = world;
	begin_session(host);
	return host;
}

void
sim_host_free(struct sim_host *host)
{
	rsb_session_free(host->session);
	rsb_buf_done(&host->scratch);
	free(host);
}

/* Whoever waits is told that it is unknown what became of his call. */
static void
lose_session(struct sim_host *host)
{
	struct sim_world *world = host->world;
	unsigned int i;

	for (i = 0; i < world->n_call; i++) {
		struct sim_call *call = &world->calls[i];

		if (call->told == SIM_WAITS) {
			sim_check(world, call->session == host->session_id);
			call->told = SIM_UNKNOWN;
			world->n_unknown++;
		}
	}
	for (i = 0; i < host->n_proc; i++)
		host->procs[i].in_open = host->procs[i].out_open = false;
	rsb_session_free(host->session);
	begin_session(host);
	world->n_renewed++;
}

void
sim_host_lost(struct sim_host *host)
{
	host->conn = 0;
	host->stage = NO_CONN;
	rsb_session_detach(host->session);
}

static void
disconnect(struct sim_host *host)
{
	host->world->net->cut = true;
	sim_host_lost(host);
}

void
sim_host_crash(struct sim_host *host)
{
	if (host->conn != 0)
		disconnect(host);
	lose_session(host);
}

/* ---- calls ---- */

static void
open_proc(struct sim_host *host, uint64_t id)
{
	struct rsb_chans *chans = rsb_session_chans(host->session);
	size_t buffer = host->world->config.chan_buffer;

	*proc_get(host, id) = (struct proc){ .proc = id, .in_open = true, .out_open = true };
	sim_check(host->world,
		rsb_chan_open_receiver(chans, RSB_CHAN_STDOUT(id), RSB_CHAN_WINDOW_MAX) == 0);
	sim_check(host->world, rsb_chan_open_sender(chans, RSB_CHAN_STDIN(id), buffer) == 0);
}

/* Makes the next call, if there is room for it. */
static void
make_call(struct sim_host *host)
{
	struct sim_world *world = host->world;
	struct rng *rng = &world->rng;
	struct sim_call call = { .session = host->session_id };
	uint64_t id = world->n_call + 1;
	enum rsb_class class;
	int r;

	if (host->n_proc < world->config.n_proc && rng_below(rng, 4) == 0) {
		call.op = RSB_OP_tar_in;
		call.proc = host->n_proc + 1;
	} else {
		call.op = rng_below(rng, 2) ? RSB_OP_setxattr : RSB_OP_getxattr;
		call.size = world->config.large && rng_below(rng, 2)
				    ? world->config.value_max
				    : rng_size(rng, world->config.value_max);
	}
	if (call.op == RSB_OP_setxattr)
		call.fifo = host->fifo + 1;
	else if (rng_below(rng, 2))
		call.after = host->fifo;
	sim_call_encode(&call, id, &host->scratch);
	/*
	 * What waits for a mutation over there must not get there first: it would hold space for
	 * its reply, and enough of them leave none for the mutation.
	 */
	class = call.fifo > 0 || call.after > 0 ? RSB_CLASS_FIFO : RSB_CLASS_READ;
	r = rsb_stream_send(rsb_session_stream(host->session), class, rsb_buf_view(&host->scratch));
	if (r == -EAGAIN)
		return;
	sim_check(world, r == 0);
	host->fifo += call.fifo > 0;
	world->calls[world->n_call++] = call;
	if (call.op != RSB_OP_tar_in)
		return;
	host->n_proc++;
	open_proc(host, call.proc);
}

static void
take_replies(struct sim_host *host)
{
	struct sim_world *world = host->world;
	struct rsb_call_head head;
	struct sim_call *call;
	struct rsb_msg *msg;
	int r;

	while ((msg = rsb_stream_take(rsb_session_stream(host->session)))) {
		r = rsb_codec_head(
			(struct rsb_bytes){ .data = msg->data, .size = msg->size }, &head);
		sim_check(world, r == 0 && head.op == 0);
		call = sim_call(world, head.id);
		if (call->told != SIM_WAITS || call->session != host->session_id)
			sim_fail(world, "call %" PRIu64 " has a second answer", head.id);
		sim_call_check_reply(world, call, &head);
		sim_check(world, call->epoch != 0);
		call->told = SIM_DONE;
		free(msg);
	}
}

void
sim_host_work(struct sim_host *host)
{
	struct sim_world *world = host->world;
	unsigned int i;

	if (world->n_call < world->config.n_call)
		make_call(host);
	for (i = 0; i < host->n_proc; i++)
		if (rng_below(&world->rng, 2))
			proc_work(host, &host->procs[i]);
}

bool
sim_host_is_done(const struct sim_host *host)
{
	const struct sim_world *world = host->world;
	unsigned int i;

	if (world->n_call < world->config.n_call)
		return false;
	for (i = 0; i < world->n_call; i++)
		if (world->calls[i].told == SIM_WAITS)
			return false;
	for (i = 0; i < host->n_proc; i++)
		if (host->procs[i].in_open || host->procs[i].out_open)
			return false;
	return true;
}

void
sim_host_check_rest(const struct sim_host *host)
{
	const struct rsb_chans *chans = rsb_session_chans(host->session);
	uint64_t i;

	for (i = 1; i <= host->n_proc; i++)
		sim_check(host->world, rsb_chan_drained(chans, RSB_CHAN_STDIN(i)));
	sim_check_rest(host->world, host->session, host->world->config.host_send_max);
}

/* ---- connections ---- */

void
sim_host_connect(struct sim_host *host)
{
	size_t i;

	if (host->conn != 0)
		return;
	host->conn = sim_net_connect(host->world->net);
	host->stage = CHALLENGE;
	host->hs = (struct rsb_handshake){ 0 };
	for (i = 0; i < sizeof(host->hs.host_nonce); i++)
		host->hs.host_nonce[i] = (uint8_t)rng_u64(&host->world->rng);
	sim_node_accept(host->world->node, host->conn, host->hs.host_nonce);
}

static void
say_hello(struct sim_host *host, struct rsb_bytes frame)
{
	struct sim_net *net = host->world->net;
	struct rsb_diag diag = { 0 };
	struct rsb_stream_state state;
	struct rsb_buf out = { 0 };
	struct rsb_hello hello = {
		.sandbox_id = rsb_bytes_str("sim"),
		.session_id = { (const uint8_t *)&host->session_id, sizeof(host->session_id) },
		.epoch = { (const uint8_t *)&host->epoch, host->epoch ? sizeof(host->epoch) : 0 },
	};

	rsb_stream_state(rsb_session_stream(host->session), &state);
	hello.received = state.received;
	hello.acked = state.acked;
	hello.window = state.limit;
	hello.digest = state.digest;
	sim_check(host->world,
		rsb_handshake_hello(&host->hs, &host->world->key, frame, &hello, &out, &diag) == 0);
	sim_net_push(net, &net->to_sidecar, host->conn, rsb_buf_view(&out));
	rsb_buf_done(&out);
	host->stage = WELCOME;
}

static void
be_welcome(struct sim_host *host, struct rsb_bytes frame)
{
	struct sim_world *world = host->world;
	struct rsb_diag diag = { 0 };
	struct rsb_welcome welcome;
	struct rsb_stream_state state;
	int r;

	sim_check(world, rsb_handshake_check_welcome(&host->hs, frame, &welcome, &diag) == 0);
	state = (struct rsb_stream_state){
		.received = welcome.received,
		.acked = welcome.acked,
		.limit = welcome.window,
		.digest = welcome.digest,
	};
	r = host->welcomed && !welcome.resumed
		    ? -ESTALE
		    : rsb_session_attach(host->session, world->now_ns, &state, NULL);
	if (r < 0) {
		disconnect(host);
		lose_session(host);
		return;
	}
	world->n_resumed += welcome.resumed;
	host->welcomed = true;
	sim_check(world, welcome.epoch.size == sizeof(host->epoch));
	memcpy(&host->epoch, welcome.epoch.data, sizeof(host->epoch));
	host->stage = LIVE;
}

void
sim_host_frame(struct sim_host *host, struct rsb_bytes frame)
{
	int r;

	if (host->stage == CHALLENGE) {
		say_hello(host, frame);
		return;
	}
	if (host->stage == WELCOME) {
		be_welcome(host, frame);
		return;
	}
	r = rsb_session_input(host->session, host->world->now_ns, frame);
	take_replies(host);
	if (r == 0)
		return;
	sim_check(host->world, host->world->was_rolled_back);
	disconnect(host);
	if (r == -ESTALE) {
		host->world->n_stale++;
		lose_session(host);
	}
}

void
sim_host_output(struct sim_host *host, unsigned int n)
{
	struct sim_net *net = host->world->net;
	int r;

	for (; n > 0 && host->stage == LIVE; n--) {
		rsb_buf_clear(&host->scratch);
		r = rsb_session_output(host->session, host->world->now_ns, &host->scratch);
		sim_check(host->world, r >= 0);
		if (r == 0)
			return;
		sim_net_push(net, &net->to_sidecar, host->conn, rsb_buf_view(&host->scratch));
	}
}

void
sim_host_tick(struct sim_host *host)
{
	if (host->stage == LIVE && rsb_session_tick(host->session, host->world->now_ns) < 0)
		disconnect(host);
}
