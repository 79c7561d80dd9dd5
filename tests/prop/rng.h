/* SPDX-License-Identifier: MIT */
#ifndef RSB_TEST_RNG_H
#define RSB_TEST_RNG_H

/* Random numbers that can be had again: the seed is printed, and RSB_SEED=<seed> replays a run. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/secret.h"

struct rng {
	uint64_t state;
};

static inline void
rng_init(struct rng *rng)
{
	const char *seed = getenv("RSB_SEED");

	if (seed)
		rng->state = strtoull(seed, NULL, 0);
	else if (rsb_random(&rng->state, sizeof(rng->state)) < 0)
		abort();
	printf("RSB_SEED=%" PRIu64 "\n", rng->state);
	(void)fflush(stdout); /* a crash would take it along */
}

/* splitmix64 */
static inline uint64_t
rng_u64(struct rng *rng)
{
	uint64_t z = (rng->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Below n > 0. */
static inline size_t
rng_below(struct rng *rng, size_t n)
{
	return (size_t)(rng_u64(rng) % n);
}

/* Of every magnitude alike. */
static inline uint64_t
rng_magnitude(struct rng *rng)
{
	return rng_u64(rng) >> rng_below(rng, 64);
}

/* At most max, most often small, now and then just the maximum. */
static inline size_t
rng_size(struct rng *rng, size_t max)
{
	const size_t few = max < 16 ? max : 16;

	switch (rng_below(rng, 16)) {
	case 0:
		return max;
	case 1:
		return rng_below(rng, max + 1);
	default:
		return rng_below(rng, few + 1);
	}
}

#endif
