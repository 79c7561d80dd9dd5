/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"
#include "util/awake.h"

#define SEC RSB_NSEC_PER_SEC

START_TEST(goes_on_while_it_is_read)
{
	struct rsb_awake awake = { .step_ns = SEC };
	uint64_t now_ns;

	for (now_ns = 5 * SEC; now_ns < 500 * SEC; now_ns += SEC)
		ck_assert_uint_eq(rsb_awake_ns(&awake, now_ns), now_ns);
}
END_TEST

START_TEST(leaves_out_what_it_slept)
{
	struct rsb_awake awake = { .step_ns = SEC };

	ck_assert_uint_eq(rsb_awake_ns(&awake, 5 * SEC), 5 * SEC);
	ck_assert_uint_eq(rsb_awake_ns(&awake, 3605 * SEC), 6 * SEC);
	ck_assert_uint_eq(rsb_awake_ns(&awake, 3606 * SEC), 7 * SEC);
	ck_assert_uint_eq(rsb_awake_ns(&awake, 7206 * SEC), 8 * SEC);
}
END_TEST

START_TEST(bears_readings_that_come_out_of_order)
{
	struct rsb_awake awake = { .step_ns = SEC };

	ck_assert_uint_eq(rsb_awake_ns(&awake, 5 * SEC + 2), 5 * SEC + 2);
	ck_assert_uint_eq(rsb_awake_ns(&awake, 5 * SEC + 1), 5 * SEC + 1);
	ck_assert_uint_eq(rsb_awake_ns(&awake, 6 * SEC), 6 * SEC);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		goes_on_while_it_is_read,
		leaves_out_what_it_slept,
		bears_readings_that_come_out_of_order,
	};

	return unit_run("awake", tests, RSB_ARRAY_SIZE(tests));
}
