/* SPDX-License-Identifier: MIT */
#include "proto/mp.h"
#include "tests/fuzz/fuzz.h"

/* Each way to read a value either refuses it and stays, or ends where skipping it ends. */

static void
ended(int r, const struct rsb_mp *mp, const struct rsb_mp *before, const uint8_t *end)
{
	if (r < 0)
		FUZZ_CHECK(mp->pos == before->pos);
	else
		FUZZ_CHECK(mp->pos == end);
}

static void
read_each_way(const struct rsb_mp *before, const uint8_t *end)
{
	struct rsb_bytes bytes;
	struct rsb_mp mp;
	uint64_t u64;
	int64_t i64;
	uint32_t n;
	int r;

	mp = *before;
	r = rsb_mp_u64(&mp, &u64);
	ended(r, &mp, before, end);
	mp = *before;
	r = rsb_mp_i64(&mp, &i64);
	ended(r, &mp, before, end);
	mp = *before;
	r = rsb_mp_bytes(&mp, 1000, &bytes);
	ended(r, &mp, before, end);
	if (r >= 0)
		FUZZ_CHECK(bytes.data + bytes.size == end);
	mp = *before;
	r = rsb_mp_array(&mp, &n);
	if (r < 0)
		return;
	FUZZ_CHECK(n <= rsb_mp_left(&mp));
	for (uint32_t i = 0; i < n; i++)
		FUZZ_CHECK(rsb_mp_skip(&mp) >= 0);
	FUZZ_CHECK(mp.pos == end);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rsb_mp mp, after;

	rsb_mp_init(&mp, (struct rsb_bytes){ data, size });
	for (;;) {
		after = mp;
		if (rsb_mp_skip(&after) < 0) {
			FUZZ_CHECK(after.pos == mp.pos);
			break;
		}
		FUZZ_CHECK(after.pos > mp.pos && after.pos <= data + size);
		read_each_way(&mp, after.pos);
		mp = after;
	}
	return 0;
}
