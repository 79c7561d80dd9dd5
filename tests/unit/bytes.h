/* SPDX-License-Identifier: MIT */
#ifndef RSB_TEST_BYTES_H
#define RSB_TEST_BYTES_H

/* Byte strings for tests of parsers. */

#include <stdlib.h>
#include <string.h>

#include "util/buf.h"

#define BYTES(...)                                                \
	((struct rsb_bytes){                                      \
		.data = (const uint8_t[]){ __VA_ARGS__ },         \
		.size = sizeof((const uint8_t[]){ __VA_ARGS__ }), \
	})

/*
 * A copy of the first size bytes in storage of just that size, so that sanitizers see one byte too
 * many.
 */
static inline struct rsb_bytes
bytes_cut(struct rsb_bytes bytes, size_t size)
{
	uint8_t *copy = malloc(size > 0 ? size : 1);

	if (!copy)
		abort();
	if (size > 0)
		memcpy(copy, bytes.data, size);
	return (struct rsb_bytes){ .data = copy, .size = size };
}

static inline void
bytes_free(struct rsb_bytes bytes)
{
	free((void *)(uintptr_t)bytes.data);
}

static inline int
bytes_equal(struct rsb_bytes a, struct rsb_bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

#endif
