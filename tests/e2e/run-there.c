/* SPDX-License-Identifier: MIT */
/*
 * run-there SOCKET COMMAND [ARGUMENT ...]: runs a command through the control socket at SOCKET,
 * where no state directory tells rsb-exec about it. Standard output and the status are the
 * command's; the rest is for tests that fail.
 */

#include <stdio.h>

#include "exec/client.h"
#include "proto/codec.h"

struct run {
	struct rsb_loop *loop;
	struct rsb_client *client;
	int n_end;
	struct rsb_spawn_rep spawned;
	struct rsb_wait_rep ended;
};

static void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct run *run = arg;

	(void)fwrite(data.data, 1, data.size, chan % 4 == 1 ? stdout : stderr);
	rsb_chan_consume(rsb_client_chans(run->client), chan, data.size);
	run->n_end += fin;
	rsb_client_kick(run->client);
}

static void
on_writable(void *arg, uint64_t chan)
{
	(void)arg;
	(void)chan;
}

static void
on_reset(void *arg, uint64_t chan, int r)
{
	struct run *run = arg;

	(void)chan;
	(void)r;
	run->n_end++;
}

static void
on_closed(void *arg, int r)
{
	(void)arg;
	(void)fprintf(stderr, "run-there: the daemon is gone (%d)\n", r);
	exit(125);
}

static void
copy_spawned(void *arg, const void *rep)
{
	((struct run *)arg)->spawned = *(const struct rsb_spawn_rep *)rep;
}

static void
copy_ended(void *arg, const void *rep)
{
	((struct run *)arg)->ended = *(const struct rsb_wait_rep *)rep;
}

static int
start(struct run *run, uint64_t proc, char **argv)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf args = { .max = RSB_MESSAGE_MAX };
	struct rsb_spawn_req req = { .proc = proc, .flags = RSB_SPAWN_STDIN_NULL, .umask = 022 };
	struct rsb_chans *chans = rsb_client_chans(run->client);
	uint64_t n = 0;
	int r = 0;

	for (; argv[n] && r >= 0; n++)
		r = rsb_seq_append_bytes(rsb_bytes_str(argv[n]), &args);
	req.argv = rsb_seq_of(&args, n);
	if (r >= 0)
		r = rsb_chan_open_receiver(chans, RSB_CHAN_STDOUT(proc), RSB_CHAN_WINDOW_MAX);
	if (r >= 0)
		r = rsb_chan_open_receiver(chans, RSB_CHAN_STDERR(proc), RSB_CHAN_WINDOW_MAX);
	if (r >= 0)
		r = rsb_client_call_wait(run->client, RSB_OP_spawn, &req, 0, copy_spawned, run);
	return r;
}

int
main(int argc, char **argv)
{
	const struct rsb_client_ops ops = {
		.chans = { .data = on_data, .writable = on_writable, .reset = on_reset },
		.closed = on_closed,
	};
	struct rsb_wait_req wait = { .what = RSB_WAIT_LEADER };
	struct run run = { .n_end = 0 };
	struct rsb_diag diag = { .text = "" };
	int r;

	if (argc < 3)
		return 2;
	r = rsb_loop_new(rsb_clock_monotonic(), &run.loop);
	if (r >= 0)
		r = rsb_client_open(run.loop, argv[1], &ops, &run, &run.client, &diag);
	if (r >= 0) {
		wait.proc = rsb_client_new_proc(run.client);
		r = start(&run, wait.proc, argv + 2);
	}
	if (r >= 0 && !run.spawned.stage)
		r = rsb_client_call_wait(run.client, RSB_OP_wait, &wait, 0, copy_ended, &run);
	while (r >= 0 && !run.spawned.stage && run.n_end < 2)
		r = rsb_loop_step(run.loop, -1);
	if (r >= 0 && !run.spawned.stage)
		r = rsb_client_call_wait(run.client, RSB_OP_proc_free,
			&(struct rsb_proc_req){ .proc = wait.proc }, 0, NULL, NULL);
	if (r < 0)
		(void)fprintf(stderr, "run-there: %s\n", rsb_diag_text(&diag, r));
	rsb_client_free(run.client);
	rsb_loop_free(run.loop);
	if (r < 0 || run.spawned.stage)
		return 125;
	return run.ended.exited ? (int)run.ended.code : 128 + (int)run.ended.signal;
}
