/* SPDX-License-Identifier: MIT */
#include <limits.h>

#include "keeper/gitindex.h"
#include "tests/fuzz/fuzz.h"

/* An index without its end: of either size it is zeros, which counts as a checksum. */

static int
look_at(void *arg, const struct rsb_gitindex_entry *entry)
{
	size_t *n = arg;

	FUZZ_CHECK(entry->path[0] && strlen(entry->path) < PATH_MAX);
	FUZZ_CHECK(entry->id.size == RSB_SHA1_SIZE || entry->id.size == RSB_SHA256_SIZE);
	++*n;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t ends[] = { RSB_SHA1_SIZE, RSB_SHA256_SIZE };
	static const uint8_t zeros[RSB_SHA256_SIZE];

	for (size_t i = 0; i < RSB_ARRAY_SIZE(ends); i++) {
		struct rsb_buf whole = { 0 };
		size_t n = 0;

		FUZZ_CHECK(rsb_buf_append(&whole, data, size) == 0);
		FUZZ_CHECK(rsb_buf_append(&whole, zeros, ends[i]) == 0);
		/* Nobody hears of one that is damaged. */
		if (rsb_gitindex_parse(rsb_buf_view(&whole), look_at, &n) < 0)
			FUZZ_CHECK(n == 0);
		(void)rsb_gitindex_check(rsb_buf_view(&whole), ends[i]);
		rsb_buf_done(&whole);
	}
	return 0;
}
