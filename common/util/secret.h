/* SPDX-License-Identifier: MIT */
#ifndef RSB_SECRET_H
#define RSB_SECRET_H

/*
 * Bytes that must not leak: zeroed on done, compared in constant time. There is no
 * printing function on purpose; a secret appears in no log, argv, environment or error.
 */

#include "util/macro.h"

#define RSB_SECRET_MAX 128

struct rsb_secret {
	uint8_t data[RSB_SECRET_MAX];
	size_t size;
};

/* -EMSGSIZE over RSB_SECRET_MAX. */
rsb_nodiscard int rsb_secret_set(struct rsb_secret *secret, const void *data, size_t size);
/* size fresh random bytes from getrandom(2). */
rsb_nodiscard int rsb_secret_generate(struct rsb_secret *secret, size_t size);
/* 1 equal, 0 not; time depends on the sizes alone. */
int rsb_secret_equal(const void *a, size_t a_size, const void *b, size_t b_size);
void rsb_secret_done(struct rsb_secret *secret);

/* Random bytes that are no secret (ids, nonces). */
rsb_nodiscard int rsb_random(void *out, size_t size);

#endif
