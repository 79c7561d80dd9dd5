/* SPDX-License-Identifier: MIT */
#include "tests/sim/sim.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/sim/host.h"
#include "tests/sim/net.h"
#include "tests/sim/node.h"

#define MS RSB_NSEC_PER_MSEC

/* In a quiet network everything has to be done after so many rounds of 5 ms. */
#define QUIET_ROUNDS 20000
/* And then everything settled after so many of 50 ms. */
#define REST_ROUNDS 80

void
sim_fail(const struct sim_world *world, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "schedule RSB_SEED=%" PRIu64 ", step %" PRIu64 ": ", world->seed,
		world->step);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(EXIT_FAILURE);
}

uint8_t *
sim_bytes(uint64_t id, uint64_t offset, size_t size)
{
	uint8_t *data = malloc(size + 1);
	size_t i;

	if (!data)
		abort();
	for (i = 0; i < size; i++)
		data[i] = sim_byte(id, offset + i);
	return data;
}

void
sim_check_bytes(const struct sim_world *world, uint64_t id, uint64_t offset, struct rsb_bytes data)
{
	size_t i;

	for (i = 0; i < data.size; i++)
		if (data.data[i] != sim_byte(id, offset + i))
			sim_fail(world, "%" PRIu64 " is wrong at %" PRIu64, id, offset + i);
}

uint64_t
sim_stream_size(const struct sim_world *world, uint64_t chan)
{
	struct rng rng = { .state = world->seed ^ chan };

	return rng_below(&rng, 2) ? world->config.stream_max
				  : rng_size(&rng, world->config.stream_max);
}

struct sim_call *
sim_call(struct sim_world *world, uint64_t id)
{
	sim_check(world, id >= 1 && id <= world->n_call);
	return &world->calls[id - 1];
}

struct rsb_session *
sim_session_new(const struct sim_world *world, size_t send_max, size_t window,
	unsigned int silent_max, const struct rsb_chan_ops *ops, void *arg)
{
	const struct rsb_session_config config = {
		.send_max = send_max,
		.window = window,
		.ping_ns = SIM_PING_NS,
		.silent_max = silent_max,
		.chan_ops = ops,
		.chan_arg = arg,
	};
	struct rsb_session *session;

	sim_check(world, rsb_session_new(&config, &session) == 0);
	return session;
}

void
sim_check_rest(const struct sim_world *world, struct rsb_session *session, size_t send_max)
{
	size_t space = rsb_stream_space(rsb_session_stream(session));

	sim_check(world, rsb_session_attached(session));
	sim_check(world, !rsb_stream_waits_for_ack(rsb_session_stream(session)));
	sim_check(world, space == rsb_min(send_max - RSB_STREAM_COST, (size_t)RSB_MESSAGE_MAX));
	sim_check(world, rsb_chans_unsettled(rsb_session_chans(session)) == 0);
	sim_check(world, rsb_chans_in_flight(rsb_session_chans(session)) == 0);
}

void
sim_check_join(const struct sim_world *world, bool resumed, uint64_t executed)
{
	unsigned int i;

	if (!resumed)
		return;
	for (i = 0; i < world->n_call; i++) {
		const struct sim_call *call = &world->calls[i];

		if (call->told == SIM_DONE && call->session == sim_host_session(world->host) &&
			!(executed & UINT64_C(1) << i))
			sim_fail(world, "call %u is done for the host, not over there", i + 1);
	}
}

static size_t
pick(struct rng *rng, const size_t *choices, size_t n)
{
	return choices[rng_below(rng, n)];
}

static void
choose(struct sim_config *config, struct rng *rng)
{
	static const size_t send_max[] = { 700, 1500, 5000, 300000, 300000 };
	static const size_t window[] = { 1, 200, 1000, 5000, 200000, 200000 };
	static const size_t buffer[] = { 1, 50, 1000, 100000 };

	*config = (struct sim_config){
		.host_send_max = pick(rng, send_max, RSB_ARRAY_SIZE(send_max)),
		.host_window = pick(rng, window, RSB_ARRAY_SIZE(window)),
		.sidecar_send_max = pick(rng, send_max, RSB_ARRAY_SIZE(send_max)),
		.sidecar_window = pick(rng, window, RSB_ARRAY_SIZE(window)),
		.chan_buffer = pick(rng, buffer, RSB_ARRAY_SIZE(buffer)),
		.stream_max = 300,
		.n_call = 1 + (unsigned int)rng_below(rng, 24),
		.n_proc = (unsigned int)rng_below(rng, SIM_PROCS_MAX),
		.n_fault = (unsigned int)rng_below(rng, 6),
		.n_step = 20 + (unsigned int)rng_below(rng, 500),
		.slow = rng_below(rng, 4) == 0,
	};
	config->value_max = rsb_min(config->host_send_max, config->sidecar_send_max) / 2 - 200;
	config->value_max = rsb_min(config->value_max, (size_t)500);
	switch (rng_below(rng, 64)) {
	case 0:
		config->large = true;
		config->host_send_max = config->sidecar_send_max = 300000;
		config->value_max = RSB_XATTR_MAX;
		config->n_fault += 4;
		break;
	case 1:
		/* Streams that fill their windows. */
		config->chan_buffer = 400000;
		config->stream_max = 1 << 20;
		config->n_proc = 1;
		config->slow = true;
		break;
	default:
		break;
	}
}

/* ---- what can happen ---- */

static void
deliver_to_sidecar(struct sim_world *world, size_t n)
{
	struct rsb_bytes frame;

	for (; n > 0; n--) {
		frame = sim_net_pop(&world->net->to_sidecar);
		if (!frame.data)
			return;
		sim_node_frame(world->node, frame);
	}
}

static void
deliver_to_host(struct sim_world *world, size_t n)
{
	struct rsb_bytes frame;

	for (; n > 0 && sim_host_conn(world->host) == world->net->conn; n--) {
		frame = sim_net_pop(&world->net->to_host);
		if (!frame.data)
			return;
		sim_host_frame(world->host, frame);
		free((void *)frame.data);
	}
}

static void
pass_time(struct sim_world *world, uint64_t ns)
{
	world->now_ns += ns;
	sim_host_tick(world->host);
	sim_node_event(world->node, SIM_TICK, 0);
}

/* The ends learn of a broken connection each in its own time. */
static void
notice_host(struct sim_world *world)
{
	if (world->net->cut && sim_host_conn(world->host) != 0)
		sim_host_lost(world->host);
}

static void
notice_sidecar(struct sim_world *world)
{
	uint64_t conn = sim_sidecar_conn(sim_node_sidecar(world->node));

	if (conn != 0 && (world->net->cut || conn != world->net->conn))
		sim_node_event(world->node, SIM_LOST, conn);
}

static void
fault(struct sim_world *world)
{
	struct rng *rng = &world->rng;
	size_t age = sim_node_age(world->node);

	world->net->cut = true;
	switch (rng_below(rng, 10)) {
	case 0:
		sim_node_crash(world->node);
		break;
	case 1:
		sim_host_crash(world->host);
		break;
	case 2:
	case 3:
		/* TCP lets nothing through to a copy that is elsewhere in its numbers. */
		sim_net_clear(&world->net->to_sidecar);
		sim_node_roll_back(world->node, rng_below(rng, rsb_min(age, (size_t)200) + 1));
		break;
	default:
		break;
	}
}

static void
step(struct sim_world *world)
{
	struct rng *rng = &world->rng;
	size_t n = rng_below(rng, 3) ? 1 + rng_below(rng, 3) : SIM_PIPE_MAX;

	if (world->config.large)
		n = 1; /* so that what happens also happens between the two frames */

	switch (rng_below(rng, 16)) {
	case 0:
	case 1:
	case 2:
		deliver_to_sidecar(world, n);
		break;
	case 3:
	case 4:
	case 5:
		deliver_to_host(world, n);
		break;
	case 6:
	case 7:
		sim_host_output(world->host, (unsigned int)n);
		break;
	case 8:
	case 9:
		sim_node_event(world->node, SIM_OUTPUT, n);
		break;
	case 10:
	case 11:
		sim_node_event(world->node, SIM_WORK, rng_u64(rng));
		break;
	case 12:
	case 13:
		sim_host_work(world->host);
		break;
	case 14:
		pass_time(world, rng_below(rng, 64) ? rng_below(rng, 20 * MS) : 2000 * MS);
		break;
	default:
		if (rng_below(rng, 2))
			notice_host(world);
		else
			notice_sidecar(world);
		sim_host_connect(world->host);
		break;
	}
}

/* Everybody does all that he can; nothing breaks. */
static void
quiet_round(struct sim_world *world, uint64_t ns)
{
	int i;

	notice_host(world);
	notice_sidecar(world);
	sim_host_connect(world->host);
	sim_host_work(world->host);
	for (i = 0; i < 4; i++)
		sim_node_event(world->node, SIM_WORK, rng_u64(&world->rng));
	sim_host_output(world->host, SIM_PIPE_MAX);
	deliver_to_sidecar(world, SIM_PIPE_MAX);
	sim_node_event(world->node, SIM_OUTPUT, SIM_PIPE_MAX);
	deliver_to_host(world, SIM_PIPE_MAX);
	pass_time(world, ns);
	world->step++;
}

static void
check_told(const struct sim_world *world)
{
	unsigned int i;

	for (i = 0; i < world->n_call; i++)
		if (world->calls[i].told == SIM_DONE)
			sim_check(world, world->calls[i].epoch != 0);
}

struct tally {
	uint64_t n_resumed;
	uint64_t n_renewed;
	uint64_t n_stale;
	uint64_t n_unknown;
	uint64_t n_call;
};

static void
run(uint64_t seed, struct tally *tally)
{
	struct sim_world *world = rsb_new(struct sim_world);
	unsigned int i;

	if (!world || rsb_secret_set(&world->key, "0123456789abcdef0123456789abcdef", 32) < 0)
		abort();
	world->seed = world->rng.state = seed;
	world->now_ns = RSB_NSEC_PER_SEC;
	choose(&world->config, &world->rng);
	world->net = sim_net_new();
	world->host = sim_host_new(world);
	world->node = sim_node_new(world);
	for (; world->step < world->config.n_step; world->step++) {
		if (rng_below(&world->rng, world->config.n_step) < world->config.n_fault)
			fault(world);
		step(world);
	}
	for (i = 0; !sim_host_is_done(world->host); i++) {
		if (i == QUIET_ROUNDS)
			sim_fail(world, "nothing moves any more");
		quiet_round(world, 5 * MS);
	}
	for (i = 0; i < REST_ROUNDS; i++)
		quiet_round(world, 50 * MS);
	check_told(world);
	sim_host_check_rest(world->host);
	sim_sidecar_check_rest(sim_node_sidecar(world->node));
	tally->n_resumed += world->n_resumed;
	tally->n_renewed += world->n_renewed;
	tally->n_stale += world->n_stale;
	tally->n_unknown += world->n_unknown;
	tally->n_call += world->n_call;
	sim_node_free(world->node);
	sim_host_free(world->host);
	sim_net_free(world->net);
	free(world);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = { { "schedules", required_argument, NULL, 'n' },
		{ 0 } };
	uint64_t n_schedule = 20000, i;
	struct tally tally = { 0 };
	struct rng seeds;
	int c;

	while ((c = getopt_long(argc, argv, "n:", options, NULL)) != -1) {
		if (c != 'n') {
			fprintf(stderr,
				"Usage: sim [--schedules N]; RSB_SEED=<seed> replays one\n");
			return 2;
		}
		n_schedule = strtoull(optarg, NULL, 0);
	}
	rng_init(&seeds);
	if (getenv("RSB_SEED")) {
		run(seeds.state, &tally);
		n_schedule = 1;
	} else {
		for (i = 0; i < n_schedule; i++)
			run(rng_u64(&seeds), &tally);
	}
	printf("%" PRIu64 " schedules, %" PRIu64 " calls, %" PRIu64 " unknown, %" PRIu64
	       " resumed, %" PRIu64 " renewed, %" PRIu64 " rollbacks found\n",
		n_schedule, tally.n_call, tally.n_unknown, tally.n_resumed, tally.n_renewed,
		tally.n_stale);
	return EXIT_SUCCESS;
}
