/* SPDX-License-Identifier: MIT */
#include "proto/pace.h"
#include "tests/unit/unit.h"

#define MS RSB_NSEC_PER_MSEC
#define CHUNK ((size_t)64 << 10)
#define CHUNKS_MAX 4096

/*
 * A path with one bottleneck: chunks leave it one after the other at its rate, and are
 * acknowledged a round trip after they entered it, or later if they had to queue.
 */
struct path {
	uint64_t rate;
	uint64_t rtt_ns;
	uint64_t now_ns;
	uint64_t free_ns;
	uint64_t acked_at[CHUNKS_MAX];
	size_t head;
	size_t tail;
	uint64_t delivered;
	uint64_t queue_ns; /* longest wait in the queue */
};

static void
path_send(struct path *path)
{
	path->free_ns = rsb_max(path->free_ns, path->now_ns);
	path->queue_ns = rsb_max(path->queue_ns, path->free_ns - path->now_ns);
	path->free_ns += CHUNK * RSB_NSEC_PER_SEC / path->rate;
	if (path->tail - path->head >= CHUNKS_MAX)
		ck_abort_msg("more in flight than there should ever be");
	path->acked_at[path->tail++ % CHUNKS_MAX] = path->free_ns + path->rtt_ns;
}

/* The queue counts for a PING too. */
static void
path_ping(const struct path *path, struct rsb_pace *pace)
{
	uint64_t wait_ns = rsb_max(path->free_ns, path->now_ns) - path->now_ns;
	bool calm = (path->tail - path->head) * CHUNK <= RSB_PACE_MIN;

	rsb_pace_round_trip(pace, path->now_ns, path->rtt_ns + wait_ns, calm);
}

/* Sends as much as pace allows for a time; returns the bytes delivered in the second half of it. */
static uint64_t
run(struct path *path, struct rsb_pace *pace, uint64_t for_ns)
{
	uint64_t end_ns = path->now_ns + for_ns, half_ns = path->now_ns + for_ns / 2, half = 0;

	rsb_pace_round_trip(pace, path->now_ns, path->rtt_ns, true);
	while (path->now_ns < end_ns) {
		while ((path->tail - path->head) * CHUNK <
			rsb_pace_in_flight_max(pace, path->now_ns))
			path_send(path);
		rsb_pace_limited(pace);
		path->now_ns = path->acked_at[path->head++ % CHUNKS_MAX];
		path->delivered += CHUNK;
		if (path->now_ns >= half_ns && half == 0) {
			half = path->delivered;
			path->queue_ns = 0;
		}
		rsb_pace_progress(pace, path->now_ns, path->delivered, path->head == path->tail);
		if (path->head % 64 == 0 || rsb_pace_is_stale(pace, path->now_ns))
			path_ping(path, pace);
	}
	return path->delivered - half;
}

START_TEST(starts_with_the_minimum)
{
	struct rsb_pace pace;

	rsb_pace_init(&pace);
	ck_assert_uint_eq(rsb_pace_in_flight_max(&pace, 20 * MS), RSB_PACE_MIN);
	rsb_pace_progress(&pace, MS, 0, false);
	rsb_pace_progress(&pace, 2 * MS, 100 << 20, false);
	rsb_pace_progress(&pace, 10 * MS, 200 << 20, true);
	ck_assert_uint_eq(rsb_pace_in_flight_max(&pace, 20 * MS), RSB_PACE_MIN);
	rsb_pace_round_trip(&pace, 20 * MS, 0, true);
	ck_assert_uint_eq(rsb_pace_in_flight_max(&pace, 20 * MS), RSB_PACE_MIN);
}
END_TEST

START_TEST(fills_paths_of_many_kinds_without_a_long_queue)
{
	static const struct {
		uint64_t rate;
		uint64_t rtt_ms;
	} cases[] = { { 1000000, 20 }, { 12500000, 40 }, { 125000000, 40 }, { 125000000, 1 },
		{ 50000000, 200 } };
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		struct path path = {
			.rate = cases[i].rate,
			.rtt_ns = cases[i].rtt_ms * MS,
			.now_ns = MS,
		};
		uint64_t seconds = 120, share, queue_max_ns;
		struct rsb_pace pace;

		rsb_pace_init(&pace);
		share = run(&path, &pace, seconds * RSB_NSEC_PER_SEC) / (seconds / 2);
		ck_assert_uint_ge(share, cases[i].rate / 100 * 90);
		/* The minimum may queue on a slow path; beyond it, about half a round trip does. */
		queue_max_ns = (RSB_PACE_MIN + CHUNK) * RSB_NSEC_PER_SEC / path.rate;
		ck_assert_uint_le(path.queue_ns, queue_max_ns + path.rtt_ns);
	}
}
END_TEST

START_TEST(stays_within_the_maximum)
{
	struct path path = { .rate = UINT64_C(10000000000), .rtt_ns = 300 * MS, .now_ns = MS };
	struct rsb_pace pace;

	rsb_pace_init(&pace);
	(void)run(&path, &pace, 20 * RSB_NSEC_PER_SEC);
	ck_assert_uint_eq(rsb_pace_in_flight_max(&pace, path.now_ns), RSB_PACE_MAX);
}
END_TEST

START_TEST(follows_a_path_that_became_slower)
{
	struct path path = { .rate = 100000000, .rtt_ns = 40 * MS, .now_ns = MS };
	struct rsb_pace pace;

	rsb_pace_init(&pace);
	(void)run(&path, &pace, 5 * RSB_NSEC_PER_SEC);
	ck_assert_uint_gt(rsb_pace_in_flight_max(&pace, path.now_ns), 5000000);
	path.rate = 10000000;
	(void)run(&path, &pace, 20 * RSB_NSEC_PER_SEC);
	ck_assert_uint_lt(rsb_pace_in_flight_max(&pace, path.now_ns), 1500000);
}
END_TEST

START_TEST(follows_a_path_that_became_longer)
{
	struct path path = { .rate = 100000000, .rtt_ns = 10 * MS, .now_ns = MS };
	struct rsb_pace pace;
	uint64_t share;

	rsb_pace_init(&pace);
	(void)run(&path, &pace, 5 * RSB_NSEC_PER_SEC);
	path.rtt_ns = 100 * MS;
	(void)run(&path, &pace, 60 * RSB_NSEC_PER_SEC);
	share = run(&path, &pace, 20 * RSB_NSEC_PER_SEC) / 10;
	ck_assert_uint_ge(share, path.rate / 100 * 80);
}
END_TEST

START_TEST(remembers_the_rate_over_a_pause)
{
	struct path path = { .rate = 100000000, .rtt_ns = 40 * MS, .now_ns = MS };
	struct rsb_pace pace;
	size_t before;
	int i;

	rsb_pace_init(&pace);
	(void)run(&path, &pace, 5 * RSB_NSEC_PER_SEC);
	before = rsb_pace_in_flight_max(&pace, path.now_ns);
	/* A little every second is no measure of the path. */
	for (i = 0; i < 20; i++) {
		path.now_ns += RSB_NSEC_PER_SEC;
		rsb_pace_round_trip(&pace, path.now_ns, path.rtt_ns, true);
		rsb_pace_progress(&pace, path.now_ns, path.delivered += 1000, true);
	}
	ck_assert_uint_ge(rsb_pace_in_flight_max(&pace, path.now_ns), before / 2);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		starts_with_the_minimum,
		fills_paths_of_many_kinds_without_a_long_queue,
		stays_within_the_maximum,
		follows_a_path_that_became_slower,
		follows_a_path_that_became_longer,
		remembers_the_rate_over_a_pause,
	};

	return unit_run("pace", tests, RSB_ARRAY_SIZE(tests));
}
