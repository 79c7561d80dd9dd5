/* SPDX-License-Identifier: MIT */
#include "keeper/life.h"
#include "tests/unit/unit.h"

#define SEC RSB_NSEC_PER_SEC
#define MIN (60 * SEC)

START_TEST(is_idle_when_nothing_was_done_for_long)
{
	struct rsb_life life;

	rsb_life_init(&life, 10 * SEC, 100 * SEC);
	ck_assert(!rsb_life_is_idle(&life, 109 * SEC));
	ck_assert(rsb_life_is_idle(&life, 110 * SEC));
	/* A call that was made, and was answered since. */
	rsb_life_use(&life, 1, 0, 105 * SEC);
	ck_assert(!rsb_life_is_idle(&life, 110 * SEC));
	rsb_life_use(&life, 1, 0, 112 * SEC);
	ck_assert(rsb_life_is_idle(&life, 115 * SEC));
	/* A command that runs. */
	rsb_life_use(&life, 1, 1, 120 * SEC);
	rsb_life_use(&life, 1, 1, 200 * SEC);
	ck_assert(!rsb_life_is_idle(&life, 209 * SEC));
	/* Without a limit never. */
	rsb_life_init(&life, 0, 0);
	ck_assert(!rsb_life_is_idle(&life, UINT64_MAX));
}
END_TEST

START_TEST(acts_ahead_of_the_hosts_limit)
{
	static const struct {
		struct rsb_life_got got;
		enum rsb_life_act used, unused;
	} rows[] = {
		/* It got what it asked for. */
		{ { 5 * MIN, 5 * MIN, 60 * MIN }, RSB_LIFE_GOES_ON, RSB_LIFE_GOES_ON },
		{ { 5 * MIN, 5 * MIN - 2 * SEC, 60 * MIN }, RSB_LIFE_GOES_ON, RSB_LIFE_GOES_ON },
		{ { 5 * MIN, 90 * MIN, 240 * MIN }, RSB_LIFE_GOES_ON, RSB_LIFE_GOES_ON },
		/* The limit shows, and is far. */
		{ { 30 * MIN, 11 * MIN, 60 * MIN }, RSB_LIFE_GOES_ON, RSB_LIFE_GOES_ON },
		{ { 5 * MIN, 16 * SEC, 60 * SEC }, RSB_LIFE_GOES_ON, RSB_LIFE_GOES_ON },
		/* And it is near. */
		{ { 30 * MIN, 10 * MIN, 60 * MIN }, RSB_LIFE_WARN, RSB_LIFE_RENEW },
		{ { 5 * MIN, 15 * SEC, 60 * SEC }, RSB_LIFE_WARN, RSB_LIFE_RENEW },
		{ { 5 * MIN, 0, 60 * SEC }, RSB_LIFE_WARN, RSB_LIFE_RENEW },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(rows); i++) {
		struct rsb_life life;

		rsb_life_init(&life, 0, 0);
		ck_assert_int_eq(rsb_life_look(&life, &rows[i].got), rows[i].unused);
		rsb_life_use(&life, 1, 1, SEC);
		ck_assert_int_eq(rsb_life_look(&life, &rows[i].got), rows[i].used);
	}
}
END_TEST

START_TEST(warns_once_of_each_limit)
{
	const struct rsb_life_got near = { 5 * MIN, MIN, 60 * MIN };
	const struct rsb_life_got fresh = { 5 * MIN, 5 * MIN, 60 * MIN };
	struct rsb_life life;

	rsb_life_init(&life, 0, 0);
	rsb_life_use(&life, 1, 1, SEC);
	ck_assert_int_eq(rsb_life_look(&life, &near), RSB_LIFE_WARN);
	ck_assert_int_eq(rsb_life_look(&life, &near), RSB_LIFE_GOES_ON);
	rsb_life_use(&life, 1, 0, 2 * SEC);
	ck_assert_int_eq(rsb_life_look(&life, &near), RSB_LIFE_RENEW);
	ck_assert_int_eq(rsb_life_look(&life, &fresh), RSB_LIFE_GOES_ON);
	rsb_life_use(&life, 2, 1, 3 * SEC);
	ck_assert_int_eq(rsb_life_look(&life, &near), RSB_LIFE_WARN);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		is_idle_when_nothing_was_done_for_long,
		acts_ahead_of_the_hosts_limit,
		warns_once_of_each_limit,
	};

	return unit_run("life", tests, RSB_ARRAY_SIZE(tests));
}
