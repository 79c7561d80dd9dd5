/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "util/map.h"

#define N 1000

static int things[N];

START_TEST(finds_what_was_put)
{
	struct rsb_map map;
	uint64_t i;

	rsb_map_init(&map, N);
	ck_assert_ptr_null(rsb_map_get(&map, 0));
	ck_assert_ptr_null(rsb_map_del(&map, 0));
	for (i = 0; i < N; i++)
		ck_assert_int_eq(rsb_map_put(&map, i << 40, &things[i]), 0);
	for (i = 0; i < N; i++)
		ck_assert_ptr_eq(rsb_map_get(&map, i << 40), &things[i]);
	ck_assert_ptr_null(rsb_map_get(&map, 1));
	rsb_map_done(&map);
}
END_TEST

START_TEST(replaces_even_when_full)
{
	struct rsb_map map;

	rsb_map_init(&map, 2);
	ck_assert_int_eq(rsb_map_put(&map, 1, &things[1]), 0);
	ck_assert_int_eq(rsb_map_put(&map, UINT64_MAX, &things[2]), 0);
	ck_assert_int_eq(rsb_map_put(&map, 3, &things[3]), -ENOSPC);
	ck_assert_int_eq(rsb_map_put(&map, 1, &things[4]), 0);
	ck_assert_ptr_eq(rsb_map_get(&map, 1), &things[4]);
	ck_assert_uint_eq(map.n, 2);
	ck_assert_ptr_eq(rsb_map_del(&map, 1), &things[4]);
	ck_assert_int_eq(rsb_map_put(&map, 3, &things[3]), 0);
	rsb_map_done(&map);
}
END_TEST

START_TEST(stays_small_under_endless_put_and_del)
{
	struct rsb_map map;
	uint64_t i;

	rsb_map_init(&map, 10);
	for (i = 0; i < 100000; i++) {
		if (rsb_map_put(&map, i, &things[0]) < 0)
			ck_abort_msg("put of %u failed", (unsigned int)i);
		if (i >= 5 && rsb_map_del(&map, i - 5) != &things[0])
			ck_abort_msg("%u was lost", (unsigned int)i - 5);
	}
	ck_assert_uint_eq(map.n, 5);
	ck_assert_uint_le(map.cap, 32);
	rsb_map_done(&map);
}
END_TEST

START_TEST(visits_each_once_while_they_are_deleted)
{
	struct rsb_map map;
	uint8_t seen[N] = { 0 };
	size_t cursor = 0;
	uint64_t key, i;
	size_t n = 0;

	rsb_map_init(&map, N);
	for (i = 0; i < N; i++)
		ck_assert_int_eq(rsb_map_put(&map, i, &things[i]), 0);
	while (rsb_map_next(&map, &cursor, &key)) {
		ck_assert_uint_eq(seen[key]++, 0);
		n++;
		ck_assert_ptr_eq(rsb_map_del(&map, key), &things[key]);
	}
	ck_assert_uint_eq(n, N);
	ck_assert_uint_eq(map.n, 0);
	cursor = 0;
	ck_assert_ptr_null(rsb_map_next(&map, &cursor, NULL));
	rsb_map_done(&map);
}
END_TEST

START_TEST(behaves_as_an_array_does)
{
	int *model[256] = { NULL };
	struct rsb_map map;
	uint32_t random = 1;
	uint64_t key;
	int *thing;
	int i;

	rsb_map_init(&map, 256);
	for (i = 0; i < 200000; i++) {
		random = random * 1664525 + 1013904223;
		key = random >> 24;
		thing = &things[(random >> 8) % N];
		if ((random >> 20) % 3 > 0) {
			if (rsb_map_put(&map, key, thing) < 0)
				ck_abort_msg("put failed in round %d", i);
			model[key] = thing;
		} else {
			if (rsb_map_del(&map, key) != model[key])
				ck_abort_msg("del differs in round %d", i);
			model[key] = NULL;
		}
	}
	for (key = 0; key < 256; key++)
		ck_assert_ptr_eq(rsb_map_get(&map, key), model[key]);
	rsb_map_done(&map);
}
END_TEST

/* The keys 0 to 99 in the order of their slots, which is what a peer must not know. */
static void
order_of(uint64_t seed, uint64_t order[static 100])
{
	struct rsb_map map;
	size_t cursor = 0;
	uint64_t key;

	rsb_map_init(&map, 100);
	rsb_map_seed(&map, seed);
	for (key = 0; key < 100; key++)
		ck_assert_int_eq(rsb_map_put(&map, key, &things[0]), 0);
	for (key = 0; key < 100; key++)
		ck_assert_ptr_nonnull(rsb_map_next(&map, &cursor, &order[key]));
	rsb_map_done(&map);
}

START_TEST(places_keys_by_its_seed)
{
	uint64_t a[100], b[100], c[100];

	order_of(UINT64_C(0x9e3779b97f4a7c15), a);
	order_of(UINT64_C(0x9e3779b97f4a7c15), b);
	order_of(UINT64_C(0x9e3779b97f4a7c14), c);
	ck_assert_mem_eq(a, b, sizeof(a));
	ck_assert_mem_ne(a, c, sizeof(a));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		finds_what_was_put,
		replaces_even_when_full,
		stays_small_under_endless_put_and_del,
		visits_each_once_while_they_are_deleted,
		behaves_as_an_array_does,
		places_keys_by_its_seed,
	};

	return unit_run("map", tests, RSB_ARRAY_SIZE(tests));
}
