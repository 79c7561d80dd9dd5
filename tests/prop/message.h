/* SPDX-License-Identifier: MIT */
#ifndef RSB_TEST_MESSAGE_H
#define RSB_TEST_MESSAGE_H

/* Messages of the table for property tests and fuzz targets: made at random, and compared. */

#include <stdbool.h>

#include "proto/op.h"
#include "tests/prop/rng.h"

/* What the views of random messages point into. Zeroed memory is an empty one. */
struct pool {
	void **chunks;
	size_t n;
};

void pool_done(struct pool *pool);

/*
 * Fills msg (desc->size bytes) with something that structs.def allows. Lists are short unless
 * long_lists.
 */
void message_random(const struct rsb_message_desc *desc, struct rng *rng, bool long_lists,
	struct pool *pool, void *msg);
bool message_equal(const struct rsb_message_desc *desc, const void *a, const void *b);

/*
 * Decodes in; when that is accepted, encodes it again and decodes that, which must be accepted and
 * equal, or the process aborts. Returns whether it was accepted.
 */
bool message_settles(const struct rsb_message_desc *desc, struct rsb_bytes in);

#endif
