/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUZZ_H
#define RSB_FUZZ_H

/*
 * What a fuzz target defines: libFuzzer calls it with input after input, replay.c with the files of
 * the corpus. It aborts on what must not be; sanitizers see the rest.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(3): it must hold in any build. */
#define FUZZ_CHECK(x)            \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

static inline int
fuzz_equal(struct rsb_bytes a, struct rsb_bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

#endif
