/* SPDX-License-Identifier: MIT */
#include "exec/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "exec/input.h"
#include "exec/output.h"
#include "exec/spawnreq.h"
#include "proto/codec.h"

#define LET_GO_NS (2 * RSB_NSEC_PER_SEC)
#define SECOND_INT_NS (2 * RSB_NSEC_PER_SEC)
#define STDIN_BUFFER ((size_t)1 << 20)

struct out {
	struct state *state;
	struct rsb_output *output;
	uint64_t chan;
	uint64_t received;
	uint64_t expected; /* size of what came before the command's end, once that is known */
	bool ended;        /* nobody holds it any more, or we do not want it */
	bool cut;          /* no more of it comes, whatever there was */
};

struct state {
	struct rsb_loop *loop;
	struct rsb_client *client;
	struct rsb_input *input;
	struct rsb_source *signals;
	struct rsb_timer *drain;
	struct out outs[2];
	struct rsb_run_result *result;
	uint64_t proc;
	uint64_t last_int_ns;
	uint64_t drain_ns;
	unsigned int n_int;
	int signal_fd;
	int early_r; /* of an output or the wait, before the command is known to run */
	int write_r; /* why output is missing */
	int lost_r;  /* why no answer, or no output, may come any more */
	bool asked;  /* for the command: only its answer says now that it did not begin */
	bool taken;  /* by the daemon, which gives credit for its input then */
	bool began;
	bool abandoned; /* the user had no patience: all of it ends with us */
	bool ended;     /* the command: its own end is in result */
	bool lost;      /* from now on we only write what has come */
	bool silent;    /* no stream says anything more, be it that it ends */
	bool drained;   /* others had their time to write after it */
	bool finished;  /* we may leave */
};

static void
finish(struct state *s, enum rsb_run_end end, int error)
{
	if (s->finished)
		return;
	s->result->end = end;
	s->result->error = error;
	s->finished = true;
	rsb_loop_stop(s->loop);
}

/* How it ends when no answer comes any more. */
static enum rsb_run_end
cut_off(const struct state *s)
{
	return s->began ? RSB_RUN_LOST : s->asked ? RSB_RUN_UNKNOWN : RSB_RUN_FAILED;
}

/* The command's own status is for who has all of its output. */
static void
settle(struct state *s)
{
	struct rsb_run_result *result = s->result;

	for (int i = 0; i < 2 && s->ended; i++) {
		result->output += s->outs[i].expected;
		result->came += rsb_min(s->outs[i].received, s->outs[i].expected);
	}
	if (!s->ended)
		finish(s, cut_off(s), s->lost_r);
	else if (result->came < result->output)
		finish(s, RSB_RUN_CUT, s->lost_r);
	else
		finish(s, result->end, 0);
}

/*
 * All that the command itself wrote has been handed to our descriptors, and so has what others
 * wrote that hold its streams, for as long as we wait for those; or what there is of it, when no
 * more can come.
 */
static void
check_finished(struct state *s)
{
	if (s->finished || !(s->ended || s->lost))
		return;
	for (int i = 0; i < 2; i++) {
		struct out *out = &s->outs[i];
		bool over = out->ended || out->cut || s->silent;

		if (!rsb_output_empty(out->output))
			return;
		if (!over && (s->lost || !s->drained || out->received < out->expected))
			return;
	}
	settle(s);
}

/*
 * With these a daemon ends all streams of a command that began, which is said behind what it still
 * had of them. Otherwise they may stay open for ever.
 */
static void
lose(struct state *s, int r)
{
	if (s->finished)
		return;
	s->lost = true;
	s->lost_r = s->lost_r ? s->lost_r : r;
	s->silent = s->silent || !s->began || (r != -EOWNERDEAD && r != -ENOTCONN);
	check_finished(s);
}

static struct out *
out_of(struct state *s, uint64_t chan)
{
	return chan == s->outs[0].chan ? &s->outs[0] : &s->outs[1];
}

static void
close_out(struct out *out, int r)
{
	/*
	 * The command learns it as a local one would, by EPIPE. That nobody reads is no failure,
	 * but a full disk is, and the command may have ended before it could hear of it.
	 */
	if (r != -EPIPE && out->state->write_r == 0)
		out->state->write_r = r;
	rsb_chan_reset(rsb_client_chans(out->state->client), out->chan, r);
	out->expected = 0;
	out->ended = true;
	rsb_client_kick(out->state->client);
	check_finished(out->state);
}

static void
on_written(void *arg, size_t size, int r)
{
	struct out *out = arg;

	if (r < 0) {
		close_out(out, r);
		return;
	}
	rsb_chan_consume(rsb_client_chans(out->state->client), out->chan, size);
	rsb_client_kick(out->state->client);
	check_finished(out->state);
}

static void
on_chan_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct state *s = arg;
	struct out *out = out_of(s, chan);
	int r = data.size ? rsb_output_write(out->output, data) : 0;

	/* It may come before the answer to the spawn, and whoever reads it may send us a signal. */
	s->began = s->began || data.size > 0;
	out->received += data.size;
	out->ended = out->ended || fin;
	if (r < 0)
		close_out(out, r);
	check_finished(s);
}

static void
on_chan_writable(void *arg, uint64_t chan)
{
	struct state *s = arg;

	(void)chan;
	s->taken = true;
	if (s->input)
		rsb_input_resume(s->input);
}

static void
on_chan_reset(void *arg, uint64_t chan, int r)
{
	struct state *s = arg;

	if (chan == RSB_CHAN_STDIN(s->proc)) {
		/* The command closed its input: that is its business, not an error of ours. */
		rsb_input_free(s->input);
		s->input = NULL;
		return;
	}
	out_of(s, chan)->cut = true;
	/* A command that does not begin has no streams: the answer to its spawn says why. */
	if (s->began)
		lose(s, r);
	else
		s->early_r = r;
}

static void
on_closed(void *arg, int r)
{
	struct state *s = arg;

	s->silent = true;
	lose(s, r);
}

static const struct rsb_client_ops client_ops = {
	.chans = { .data = on_chan_data, .writable = on_chan_writable, .reset = on_chan_reset },
	.closed = on_closed,
};

static size_t
stdin_room(void *arg)
{
	struct state *s = arg;

	/* What is read here and not taken there would be lost to whoever reads next. */
	return s->taken ? rsb_chan_room(rsb_client_chans(s->client), RSB_CHAN_STDIN(s->proc)) : 0;
}

static void
on_stdin(void *arg, struct rsb_bytes data, int r)
{
	struct state *s = arg;
	struct rsb_chans *chans = rsb_client_chans(s->client);

	/* A descriptor that cannot be read (closed, a directory) is an input without bytes. */
	if (data.size == 0 || r < 0)
		(void)rsb_chan_finish(chans, RSB_CHAN_STDIN(s->proc));
	else if (rsb_chan_write(chans, RSB_CHAN_STDIN(s->proc), data) < 0)
		on_chan_reset(s, RSB_CHAN_STDIN(s->proc), -EPIPE);
	rsb_client_kick(s->client);
}

static const struct rsb_input_ops input_ops = { .room = stdin_room, .data = on_stdin };

static void
on_exit_known(void *arg, int r, const void *rep)
{
	struct state *s = arg;
	const struct rsb_wait_rep *wait = rep;

	/* When the link is given up the answers come in any order. */
	if (!s->began) {
		s->early_r = r < 0 ? r : -EPROTO;
		return;
	}
	if (r < 0) {
		/* A link that failed for good ends calls, and leaves the streams alone. */
		s->silent = s->silent || r == -ENOTCONN;
		lose(s, r);
		return;
	}
	s->result->end = wait->exited ? RSB_RUN_EXITED : RSB_RUN_SIGNALED;
	s->result->code = (int)(wait->code & 0xff);
	s->result->signal = (int)(wait->signal & 0x7f);
	if (s->outs[0].expected)
		s->outs[0].expected = wait->out_size;
	if (s->outs[1].expected)
		s->outs[1].expected = wait->err_size;
	s->ended = true;
	rsb_timer_set(s->drain, rsb_loop_now(s->loop) + s->drain_ns);
	check_finished(s);
}

static void
on_drained(void *arg)
{
	struct state *s = arg;

	s->drained = true;
	check_finished(s);
}

static void
on_spawned(void *arg, int r, const void *rep)
{
	struct state *s = arg;
	const struct rsb_spawn_rep *spawn = rep;

	/* Nothing more is known of what was sent. */
	if (r == -EOWNERDEAD || r == -ENOTCONN || r == -ECONNABORTED) {
		lose(s, r);
		return;
	}
	if (r < 0 && s->began) {
		lose(s, r);
		return;
	}
	if (r < 0) {
		s->result->ending = r == -ECONNREFUSED && !s->taken;
		finish(s, RSB_RUN_FAILED, r);
		return;
	}
	if (spawn->stage != 0) {
		s->result->stage = (uint32_t)spawn->stage;
		finish(s, RSB_RUN_NOT_BEGUN, -(int)rsb_min(spawn->error, UINT64_C(511)));
		return;
	}
	s->began = true;
	if (s->early_r < 0)
		lose(s, s->early_r);
}

static void
on_signalled(void *arg, int r, const void *rep)
{
	/* The command may have ended just before. */
	(void)arg;
	(void)r;
	(void)rep;
}

static void
on_signal(void *arg, uint32_t events)
{
	struct state *s = arg;
	struct rsb_signal_req req = { .proc = s->proc, .to = RSB_SIGNAL_GROUP };
	struct signalfd_siginfo info;
	uint64_t now_ns = rsb_loop_now(s->loop);

	(void)events;
	if (read(s->signal_fd, &info, sizeof info) != sizeof info)
		return;
	req.signal = info.ssi_signo;
	if (info.ssi_signo == SIGINT) {
		s->n_int = now_ns - s->last_int_ns < SECOND_INT_NS ? s->n_int + 1 : 1;
		s->last_int_ns = now_ns;
		if (s->n_int == 2) {
			req.signal = SIGKILL;
			req.to = RSB_SIGNAL_TREE;
		}
	}
	/*
	 * Before it runs and after its end there is nobody to forward to; at the third time no
	 * patience.
	 */
	if (!s->began || s->ended || s->lost || s->n_int > 2) {
		s->abandoned = true;
		s->result->signal = (int)info.ssi_signo;
		finish(s, RSB_RUN_SIGNALED, 0);
		return;
	}
	if (rsb_client_call(s->client, RSB_OP_signal, &req, on_signalled, s) < 0)
		lose(s, -ENOTCONN);
}

/* What was ignored when we were started (nohup, background jobs of a shell) stays ignored. */
static int
watch_signals(struct state *s)
{
	static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	struct sigaction old;
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(forwarded); i++)
		if (sigaction(forwarded[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			(void)sigaddset(&set, forwarded[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return -errno;
	return rsb_loop_add(s->loop, s->signal_fd, EPOLLIN, on_signal, s, &s->signals);
}

static void
on_losses(void *arg, int r, const void *rep)
{
	const struct rsb_ctl_status_rep *status = rep;
	const struct rsb_run *run = arg;

	if (r >= 0)
		run->losses(status->json);
}

static int
open_streams(struct state *s, const struct rsb_run *run)
{
	static const int fds[2] = { STDOUT_FILENO, STDERR_FILENO };
	struct rsb_chans *chans = rsb_client_chans(s->client);
	int r = 0;

	s->proc = rsb_client_new_proc(s->client);
	s->outs[0].chan = RSB_CHAN_STDOUT(s->proc);
	s->outs[1].chan = RSB_CHAN_STDERR(s->proc);
	for (int i = 0; i < 2 && r >= 0; i++) {
		struct out *out = &s->outs[i];

		out->state = s;
		out->expected = UINT64_MAX;
		r = rsb_output_new(s->loop, fds[i], RSB_CHAN_WINDOW_MAX + RSB_FRAME_MAX, on_written,
			out, &out->output);
		if (r >= 0)
			r = rsb_chan_open_receiver(chans, out->chan, RSB_CHAN_WINDOW_MAX);
	}
	if (r >= 0 && !run->no_stdin)
		r = rsb_chan_open_sender(chans, RSB_CHAN_STDIN(s->proc), STDIN_BUFFER);
	return r;
}

static int
start(struct state *s, const struct rsb_run *run, struct rsb_diag *diag)
{
	struct rsb_wait_req wait = { .what = RSB_WAIT_LEADER };
	int r;

	r = rsb_loop_new(rsb_clock_monotonic(), &s->loop);
	/* Before signals are taken: while it waits, they end us as they should. */
	if (r >= 0)
		r = rsb_client_open(s->loop, run->socket, &client_ops, s, &s->client, diag);
	s->result->unreached = !s->client;
	if (r >= 0)
		r = rsb_timer_new(s->loop, on_drained, s, &s->drain);
	if (r >= 0 && !run->no_signals)
		r = watch_signals(s);
	if (r >= 0)
		r = open_streams(s, run);
	/* Before the command, so that it is answered before all that the command says. */
	if (r >= 0 && run->losses)
		r = rsb_client_call(
			s->client, RSB_OP_ctl_losses, NULL, on_losses, (void *)(uintptr_t)run);
	if (r >= 0)
		r = rsb_spawnreq_send(s->client, run, s->proc, on_spawned, s, diag);
	s->asked = r >= 0;
	/* Behind it at once: the command's end then comes without another trip. */
	wait.proc = s->proc;
	if (r >= 0)
		r = rsb_client_call(s->client, RSB_OP_wait, &wait, on_exit_known, s);
	if (r >= 0 && !run->no_stdin)
		r = rsb_input_new(s->loop, STDIN_FILENO, &input_ops, s, &s->input);
	return r;
}

/*
 * The command has ended and was seen to: what it left in the background goes on without us. A
 * connection that only breaks ends all of it.
 */
static void
let_go(struct state *s)
{
	struct rsb_proc_req req = { .proc = s->proc };

	if (s->result->end != RSB_RUN_EXITED && s->result->end != RSB_RUN_SIGNALED)
		return;
	/* A daemon that does not answer has nothing left to end. */
	(void)rsb_client_call_wait(s->client, RSB_OP_proc_free, &req, LET_GO_NS, NULL, NULL);
}

void
rsb_run(const struct rsb_run *run, struct rsb_run_result *ret_result, struct rsb_diag *diag)
{
	struct state s = { .signal_fd = -1, .result = ret_result, .drain_ns = run->drain_ns };
	int r;

	*ret_result = (struct rsb_run_result){ .end = RSB_RUN_FAILED };
	(void)signal(SIGPIPE, SIG_IGN);
	r = start(&s, run, diag);
	if (r >= 0)
		r = rsb_loop_run(s.loop);
	if (r < 0 && !s.finished) {
		s.lost_r = r;
		settle(&s);
	}
	if (ret_result->end == RSB_RUN_FAILED && !s.asked && ret_result->error == -ENOTCONN)
		ret_result->unreached = true; /* it went just after it had taken us */
	if (s.write_r &&
		(ret_result->end == RSB_RUN_EXITED || ret_result->end == RSB_RUN_SIGNALED)) {
		ret_result->end = RSB_RUN_UNWRITTEN;
		ret_result->error = s.write_r;
	}
	if (s.client && s.began && !s.abandoned)
		let_go(&s);
	rsb_input_free(s.input);
	rsb_client_free(s.client);
	for (int i = 0; i < 2; i++)
		rsb_output_free(s.outs[i].output);
	rsb_source_del(s.signals);
	rsb_timer_del(s.drain);
	if (s.signal_fd >= 0)
		(void)close(s.signal_fd);
	rsb_loop_free(s.loop);
}
