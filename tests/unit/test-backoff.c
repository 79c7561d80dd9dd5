/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"
#include "util/backoff.h"

#define BASE (100 * RSB_NSEC_PER_MSEC)
#define MAX (10 * RSB_NSEC_PER_SEC)

START_TEST(doubles_until_the_maximum)
{
	unsigned int i;
	uint64_t full;

	for (i = 0; i < 20; i++) {
		full = i < 7 ? BASE << i : MAX;
		ck_assert_uint_eq(rsb_backoff_ns(i, BASE, MAX, 0), full / 2);
	}
	ck_assert_uint_eq(rsb_backoff_ns(UINT32_MAX, BASE, MAX, 0), MAX / 2);
}
END_TEST

START_TEST(stays_within_half_and_whole)
{
	ck_assert_uint_lt(rsb_backoff_ns(0, BASE, MAX, UINT32_MAX), BASE);
	ck_assert_uint_ge(rsb_backoff_ns(0, BASE, MAX, UINT32_MAX), BASE - BASE / 1000);
	ck_assert_uint_eq(rsb_backoff_ns(0, BASE, MAX, UINT32_C(1) << 31), BASE / 4 * 3);
}
END_TEST

START_TEST(does_not_overflow)
{
	ck_assert_uint_ge(rsb_backoff_ns(200, 1, UINT64_MAX, UINT32_MAX), UINT64_MAX / 8 * 7);
	ck_assert_uint_eq(rsb_backoff_ns(200, 0, MAX, UINT32_MAX), 0);
	ck_assert_uint_le(rsb_backoff_ns(3, MAX * 5, MAX, UINT32_MAX), MAX);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		doubles_until_the_maximum,
		stays_within_half_and_whole,
		does_not_overflow,
	};

	return unit_run("backoff", tests, RSB_ARRAY_SIZE(tests));
}
