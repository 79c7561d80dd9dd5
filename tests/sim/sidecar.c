/* SPDX-License-Identifier: MIT */
#include "tests/sim/sidecar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/sim/call.h"
#include "tests/sim/net.h"

/* What a reply may be beyond its value. */
#define REPLY_ROOM 256

struct job {
	uint64_t id;
	struct sim_call call; /* as the request said it */
	size_t reserved;
	bool executed;
};

struct proc {
	uint64_t proc; /* 0: none */
	uint64_t in_offset;
	size_t in_unconsumed;
	bool in_done;
	uint64_t out_written;
	bool out_done;
};

struct sim_sidecar {
	struct sim_world *world;
	bool dry;
	uint64_t epoch;
	uint64_t executed; /* calls, by bit id - 1 */
	struct rsb_buf frame;

	uint64_t conn;
	bool resumed;
	struct rsb_session *session; /* NULL: none yet */
	uint64_t session_id;
	uint64_t n_fifo; /* mutations executed in it */
	struct job jobs[SIM_CALLS_MAX];
	unsigned int n_job;
	struct proc procs[SIM_PROCS_MAX];
};

struct sim_sidecar *
sim_sidecar_new(struct sim_world *world, uint64_t epoch)
{
	struct sim_sidecar *sidecar = rsb_new(struct sim_sidecar);

	if (!sidecar)
		abort();
	sidecar->world = world;
	sidecar->epoch = epoch;
	return sidecar;
}

void
sim_sidecar_free(struct sim_sidecar *sidecar)
{
	rsb_session_free(sidecar->session);
	rsb_buf_done(&sidecar->frame);
	free(sidecar);
}

uint64_t
sim_sidecar_epoch(const struct sim_sidecar *sidecar)
{
	return sidecar->epoch;
}

bool
sim_sidecar_resumed(const struct sim_sidecar *sidecar)
{
	return sidecar->resumed;
}

uint64_t
sim_sidecar_executed(const struct sim_sidecar *sidecar)
{
	return sidecar->executed;
}

void
sim_sidecar_state(const struct sim_sidecar *sidecar, struct rsb_stream_state *ret_state)
{
	rsb_stream_state(rsb_session_stream(sidecar->session), ret_state);
}

uint64_t
sim_sidecar_conn(const struct sim_sidecar *sidecar)
{
	return sidecar->conn;
}

/* ---- streams ---- */

static struct proc *
proc_get(struct sim_sidecar *sidecar, uint64_t proc)
{
	size_t i;

	for (i = 0; i < SIM_PROCS_MAX; i++)
		if (sidecar->procs[i].proc == proc)
			return &sidecar->procs[i];
	return NULL;
}

static void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct sim_sidecar *sidecar = arg;
	struct proc *proc = proc_get(sidecar, RSB_CHAN_PROC(chan));

	sim_check(sidecar->world, proc && !proc->in_done);
	sim_check_bytes(sidecar->world, chan, proc->in_offset, data);
	proc->in_offset += data.size;
	proc->in_unconsumed += data.size;
	sim_check(sidecar->world, proc->in_unconsumed <= RSB_CHAN_WINDOW_MAX);
	if (!fin)
		return;
	sim_check(sidecar->world, proc->in_offset == sim_stream_size(sidecar->world, chan));
	proc->in_done = true;
	rsb_chan_close(rsb_session_chans(sidecar->session), chan);
}

static void
on_writable(void *arg, uint64_t chan)
{
	struct sim_sidecar *sidecar = arg;
	struct rsb_chans *chans = rsb_session_chans(sidecar->session);

	if (rsb_chan_drained(chans, chan))
		rsb_chan_close(chans, chan);
}

static void
on_reset(void *arg, uint64_t chan, rsb_unused int r)
{
	struct sim_sidecar *sidecar = arg;
	struct proc *proc = proc_get(sidecar, RSB_CHAN_PROC(chan));

	sim_check(sidecar->world, proc);
	sim_check(sidecar->world, sidecar->world->given_up & UINT64_C(1) << proc->proc);
	if (chan == RSB_CHAN_STDIN(proc->proc))
		proc->in_done = true;
	else
		proc->out_done = true;
}

static const struct rsb_chan_ops chan_ops = {
	.data = on_data,
	.writable = on_writable,
	.reset = on_reset,
};

static void
proc_open(struct sim_sidecar *sidecar, uint64_t id)
{
	struct rsb_chans *chans = rsb_session_chans(sidecar->session);
	struct proc *proc = proc_get(sidecar, 0);
	size_t buffer = sidecar->world->config.chan_buffer;
	int r;

	sim_check(sidecar->world, proc);
	*proc = (struct proc){ .proc = id };
	r = rsb_chan_open_sender(chans, RSB_CHAN_STDOUT(id), buffer);
	if (r == 0)
		r = rsb_chan_open_receiver(chans, RSB_CHAN_STDIN(id), RSB_CHAN_WINDOW_MAX);
	if (r == 0)
		return;
	/* A host that knows more of the channel than this copy does was just told so. */
	sim_check(sidecar->world, r == -EEXIST && sidecar->world->was_rolled_back);
	sidecar->world->given_up |= UINT64_C(1) << id;
	rsb_chan_close(chans, RSB_CHAN_STDOUT(id));
	proc->in_done = proc->out_done = true;
}

static void
proc_write(struct sim_sidecar *sidecar, struct proc *proc, struct rng *rng)
{
	struct rsb_chans *chans = rsb_session_chans(sidecar->session);
	uint64_t chan = RSB_CHAN_STDOUT(proc->proc);
	uint64_t left = sim_stream_size(sidecar->world, chan) - proc->out_written;
	size_t size = rng_below(rng, 2) ? (size_t)left : rng_below(rng, (size_t)left + 1);
	uint8_t *data = sim_bytes(chan, proc->out_written, size);
	int r;

	r = rsb_chan_write(chans, chan, (struct rsb_bytes){ .data = data, .size = size });
	free(data);
	sim_check(sidecar->world, r >= 0);
	proc->out_written += (uint64_t)r;
	if ((uint64_t)r < left)
		return;
	sim_check(sidecar->world, rsb_chan_finish(chans, chan) == 0);
	proc->out_done = true;
}

static void
proc_work(struct sim_sidecar *sidecar, struct proc *proc, struct rng *rng)
{
	struct rsb_chans *chans = rsb_session_chans(sidecar->session);
	size_t size = proc->in_unconsumed;

	if (!proc->out_done)
		proc_write(sidecar, proc, rng);
	if (proc->in_done || (sidecar->world->config.slow && rng_below(rng, 8)))
		return;
	if (rng_below(rng, 2))
		size = rng_below(rng, size + 1);
	rsb_chan_consume(chans, RSB_CHAN_STDIN(proc->proc), size);
	proc->in_unconsumed -= size;
}

/* ---- calls ---- */

/* The gate: a request is taken when there is room for its reply. */
static void
admit(struct sim_sidecar *sidecar)
{
	struct rsb_stream *stream = rsb_session_stream(sidecar->session);
	const struct rsb_msg *msg = rsb_stream_peek(stream);
	struct job job = { 0 };
	size_t reserve;
	int r;

	if (!msg)
		return;
	job.id = sim_call_check_request(sidecar->world, msg, &job.call);
	sim_check(sidecar->world, job.call.session == sidecar->session_id);
	reserve = REPLY_ROOM + (job.call.op == RSB_OP_getxattr ? job.call.size : 0);
	r = rsb_stream_reserve(stream, reserve);
	if (r == -EAGAIN)
		return;
	sim_check(sidecar->world, r == 0);
	job.reserved = reserve;
	sim_check(sidecar->world, sidecar->n_job < SIM_CALLS_MAX);
	sidecar->jobs[sidecar->n_job++] = job;
	free(rsb_stream_take(stream));
}

static void
tell_oracle(struct sim_sidecar *sidecar, uint64_t id)
{
	struct sim_call *call = sim_call(sidecar->world, id);

	if (sidecar->dry)
		return;
	if (call->epoch != 0 && call->epoch != sidecar->epoch)
		sim_fail(sidecar->world, "call %" PRIu64 " was executed in two epochs", id);
	call->epoch = sidecar->epoch;
}

static void
execute(struct sim_sidecar *sidecar, struct job *job)
{
	uint64_t bit = UINT64_C(1) << (job->id - 1);

	if (job->executed || job->call.after > sidecar->n_fifo)
		return;
	/* The mutator takes them as they come; so they have to come in order. */
	if (job->call.fifo > 0)
		sim_check(sidecar->world, job->call.fifo == ++sidecar->n_fifo);
	if (sidecar->executed & bit)
		sim_fail(sidecar->world, "call %" PRIu64 " was executed twice", job->id);
	sidecar->executed |= bit;
	tell_oracle(sidecar, job->id);
	job->executed = true;
	if (job->call.op == RSB_OP_tar_in)
		proc_open(sidecar, job->call.proc);
}

static void
reply(struct sim_sidecar *sidecar, struct job *job)
{
	enum rsb_class class = job->call.fifo > 0 ? RSB_CLASS_FIFO : RSB_CLASS_READ;
	struct rsb_buf out = { 0 };
	const struct proc *proc;
	int r;

	if (!job->executed)
		return;
	proc = job->call.op == RSB_OP_tar_in ? proc_get(sidecar, job->call.proc) : NULL;
	if (proc && !proc->in_done)
		return;
	sim_call_encode_reply(&job->call, job->id, &out);
	r = rsb_stream_send_reserved(
		rsb_session_stream(sidecar->session), class, rsb_buf_view(&out), job->reserved, 0);
	sim_check(sidecar->world, r == 0);
	rsb_buf_done(&out);
	*job = sidecar->jobs[--sidecar->n_job];
}

/* Mutations one after the other, reads in any order, replies in any order. */
static void
work(struct sim_sidecar *sidecar, uint64_t choice)
{
	struct rng rng = { .state = choice };
	struct job *job, *first = NULL;
	unsigned int i;

	if (!sidecar->session)
		return;
	for (i = (unsigned int)rng_below(&rng, 4); i > 0; i--)
		admit(sidecar);
	if (sidecar->n_job > 0) {
		job = &sidecar->jobs[rng_below(&rng, sidecar->n_job)];
		if (job->call.fifo == 0)
			execute(sidecar, job);
		for (i = 0; i < sidecar->n_job; i++)
			if (sidecar->jobs[i].call.fifo == sidecar->n_fifo + 1)
				first = &sidecar->jobs[i];
		if (first && rng_below(&rng, 2))
			execute(sidecar, first);
		if (rng_below(&rng, 2))
			reply(sidecar, &sidecar->jobs[rng_below(&rng, sidecar->n_job)]);
	}
	for (i = 0; i < SIM_PROCS_MAX; i++)
		if (sidecar->procs[i].proc != 0 && rng_below(&rng, 2))
			proc_work(sidecar, &sidecar->procs[i], &rng);
}

/* ---- connections ---- */

static void
drop_conn(struct sim_sidecar *sidecar)
{
	sidecar->conn = 0;
	if (sidecar->session)
		rsb_session_detach(sidecar->session);
}

static void
end_session(struct sim_sidecar *sidecar)
{
	rsb_session_free(sidecar->session);
	sidecar->session = NULL;
	sidecar->n_job = 0;
	sidecar->n_fifo = 0;
	memset(sidecar->procs, 0, sizeof(sidecar->procs));
}

/* This memory is not what the host remembers: nobody may take it for that again. */
static void
next_generation(struct sim_sidecar *sidecar, uint64_t nonce)
{
	sim_check(sidecar->world, sidecar->dry || sidecar->world->was_rolled_back);
	end_session(sidecar);
	sidecar->epoch = nonce;
	if (!sidecar->dry)
		sidecar->world->n_stale++;
}

static void
join(struct sim_sidecar *sidecar, const struct sim_event *event)
{
	const struct rsb_stream_state fresh = { .limit = event->state.limit };
	const struct sim_config *config = &sidecar->world->config;
	int r = -ENOENT;

	drop_conn(sidecar);
	if (sidecar->session && sidecar->session_id == event->session &&
		sidecar->epoch == event->epoch) {
		r = rsb_session_attach(sidecar->session, event->now_ns, &event->state, NULL);
		if (r < 0)
			next_generation(sidecar, event->nonce);
	}
	sidecar->resumed = r == 0;
	sidecar->conn = event->conn;
	if (sidecar->resumed)
		return;
	end_session(sidecar);
	sidecar->session_id = event->session;
	sidecar->session = sim_session_new(sidecar->world, config->sidecar_send_max,
		config->sidecar_window, 10, &chan_ops, sidecar);
	r = rsb_session_attach(sidecar->session, event->now_ns, &fresh, NULL);
	sim_check(sidecar->world, r == 0);
}

/* What waits to be taken is bounded by the window and one message. */
static void
check_inbox(const struct sim_sidecar *sidecar)
{
	size_t waits = 0, last = 0;
	const struct rsb_msg *msg;

	for (msg = rsb_stream_peek(rsb_session_stream(sidecar->session)); msg; msg = msg->next) {
		last = msg->size + RSB_STREAM_COST;
		waits += last;
	}
	sim_check(
		sidecar->world, waits == 0 || waits - last < sidecar->world->config.sidecar_window);
}

static void
input(struct sim_sidecar *sidecar, const struct sim_event *event)
{
	int r;

	r = rsb_session_input(sidecar->session, event->now_ns, event->frame);
	if (r < 0) {
		sim_check(sidecar->world, sidecar->dry || sidecar->world->was_rolled_back);
		drop_conn(sidecar);
	}
	if (r == -ESTALE)
		next_generation(sidecar, event->nonce);
	else
		check_inbox(sidecar);
}

static void
output(struct sim_sidecar *sidecar, const struct sim_event *event)
{
	struct sim_net *net = sidecar->world->net;
	uint64_t i;
	int r;

	for (i = 0; i < event->value; i++) {
		rsb_buf_clear(&sidecar->frame);
		r = rsb_session_output(sidecar->session, event->now_ns, &sidecar->frame);
		sim_check(sidecar->world, r >= 0);
		if (r == 0)
			break;
		if (!sidecar->dry)
			sim_net_push(
				net, &net->to_host, sidecar->conn, rsb_buf_view(&sidecar->frame));
	}
}

void
sim_sidecar_apply(struct sim_sidecar *sidecar, const struct sim_event *event, bool dry)
{
	sidecar->dry = dry;
	switch (event->type) {
	case SIM_JOIN:
		join(sidecar, event);
		break;
	case SIM_LOST:
		if (sidecar->conn == event->value)
			drop_conn(sidecar);
		break;
	case SIM_FRAME:
		input(sidecar, event);
		break;
	case SIM_OUTPUT:
		if (sidecar->conn != 0)
			output(sidecar, event);
		break;
	case SIM_TICK:
		if (sidecar->conn != 0 && rsb_session_tick(sidecar->session, event->now_ns) < 0)
			drop_conn(sidecar);
		break;
	case SIM_WORK:
		work(sidecar, event->value);
		break;
	}
}

void
sim_sidecar_check_rest(const struct sim_sidecar *sidecar)
{
	const struct sim_world *world = sidecar->world;
	const struct rsb_chans *chans = rsb_session_chans(sidecar->session);
	size_t i;

	sim_check(world, sidecar->n_job == 0);
	sim_check(world, !rsb_stream_peek(rsb_session_stream(sidecar->session)));
	for (i = 0; i < SIM_PROCS_MAX; i++)
		sim_check(world, rsb_chan_drained(chans, RSB_CHAN_STDOUT(sidecar->procs[i].proc)));
	sim_check_rest(world, sidecar->session, world->config.sidecar_send_max);
}
