/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "keeper/snapdue.h"
#include "tests/unit/unit.h"

#define SEC 1000000000UL
#define BEGIN (100 * SEC)
#define INTERVAL (60 * SEC)

static struct rsb_snapdue due;

static void
tell(uint64_t change, uint64_t commands, uint64_t now_ns)
{
	const struct rsb_snapdue_news news = {
		.change = change, .commands = commands, .settled = true, .live = true
	};

	rsb_snapdue_tell(&due, &news, now_ns);
}

/* Of what was told last. */
static void
take(uint64_t begun_ns, uint64_t now_ns, bool fuzzy, int r)
{
	const struct rsb_snapdue_end end = {
		.then = due.news, .begun_ns = begun_ns, .now_ns = now_ns, .fuzzy = fuzzy, .r = r
	};

	rsb_snapdue_ended(&due, &end);
}

static void
begin(void)
{
	rsb_snapdue_init(&due, INTERVAL);
	tell(1, 0, BEGIN);
	take(BEGIN, BEGIN, false, 0);
}

START_TEST(what_was_before_is_kept_first)
{
	rsb_snapdue_init(&due, INTERVAL);
	ck_assert_uint_eq(rsb_snapdue_at(&due), 0);
	tell(1, 0, BEGIN);
	ck_assert_uint_eq(rsb_snapdue_at(&due), BEGIN + INTERVAL);
	take(BEGIN + INTERVAL, BEGIN + INTERVAL + SEC, false, 0);
	ck_assert_uint_eq(rsb_snapdue_at(&due), 0);
}
END_TEST

START_TEST(only_dirty_time_counts)
{
	begin();
	tell(1, 0, BEGIN + 1000 * SEC);
	ck_assert_uint_eq(rsb_snapdue_at(&due), 0);
	tell(2, 0, BEGIN + 2000 * SEC);
	tell(3, 0, BEGIN + 2030 * SEC);
	ck_assert_uint_eq(rsb_snapdue_at(&due), BEGIN + 2000 * SEC + INTERVAL);
}
END_TEST

START_TEST(not_while_it_is_not_reached)
{
	const struct rsb_snapdue_news news = { .change = 2 };

	begin();
	tell(2, 0, BEGIN + SEC);
	ck_assert_uint_ne(rsb_snapdue_at(&due), 0);
	rsb_snapdue_tell(&due, &news, BEGIN + 2 * SEC);
	ck_assert_uint_eq(rsb_snapdue_at(&due), 0);
}
END_TEST

START_TEST(while_commands_run_and_when_the_last_has_ended)
{
	begin();
	tell(2, 1, BEGIN + 1000 * SEC);
	ck_assert_uint_eq(rsb_snapdue_at(&due), BEGIN + 1000 * SEC + INTERVAL);
	/* They may change anything, all the time. */
	take(BEGIN + 1060 * SEC, BEGIN + 1061 * SEC, true, 0);
	tell(2, 1, BEGIN + 1062 * SEC);
	ck_assert_uint_eq(rsb_snapdue_at(&due), BEGIN + 1061 * SEC + INTERVAL);
	tell(3, 0, BEGIN + 1063 * SEC);
	/* Ten times as long as the last one took there is peace. */
	ck_assert_uint_eq(rsb_snapdue_at(&due), BEGIN + 1071 * SEC);
	take(BEGIN + 1071 * SEC, BEGIN + 1072 * SEC, false, 0);
	ck_assert_uint_eq(rsb_snapdue_at(&due), 0);
	/* Short ones are like anything that changes something. */
	tell(4, 1, BEGIN + 2000 * SEC);
	tell(5, 0, BEGIN + 2001 * SEC);
	ck_assert_uint_eq(rsb_snapdue_at(&due), BEGIN + 2000 * SEC + INTERVAL);
}
END_TEST

START_TEST(many_short_commands_do_not_make_many)
{
	uint64_t now_ns = BEGIN;
	unsigned int n = 0;

	begin();
	for (unsigned int i = 0; i < 1000; i++) {
		uint64_t at_ns;

		now_ns += SEC / 10;
		tell(2 + 2 * i, 1, now_ns);
		now_ns += SEC / 10;
		tell(3 + 2 * i, 0, now_ns);
		at_ns = rsb_snapdue_at(&due);
		if (!at_ns || at_ns > now_ns)
			continue;
		take(now_ns, now_ns + SEC / 10, false, 0);
		n++;
	}
	/* 200 s */
	ck_assert_uint_eq(n, 3);
}
END_TEST

START_TEST(what_was_under_way_is_not_kept)
{
	begin();
	tell(2, 0, BEGIN + SEC);
	due.news.settled = false;
	take(BEGIN + 60 * SEC, BEGIN + 61 * SEC, false, 0);
	ck_assert_uint_ne(rsb_snapdue_at(&due), 0);
	tell(2, 0, BEGIN + 62 * SEC);
	take(BEGIN + 121 * SEC, BEGIN + 122 * SEC, false, 0);
	ck_assert_uint_eq(rsb_snapdue_at(&due), 0);
	/* And what came while one was taken. */
	tell(3, 0, BEGIN + 200 * SEC);
	{
		struct rsb_snapdue_end end = {
			.then = due.news, .begun_ns = BEGIN + 260 * SEC, .now_ns = BEGIN + 270 * SEC
		};

		tell(4, 0, BEGIN + 265 * SEC);
		rsb_snapdue_ended(&due, &end);
	}
	ck_assert_uint_eq(rsb_snapdue_at(&due), BEGIN + 270 * SEC + INTERVAL);
	/* One that takes longer than the interval has as much peace after it. */
	take(BEGIN + 1000 * SEC, BEGIN + 1000 * SEC + 3 * INTERVAL, false, 0);
	tell(5, 0, BEGIN + 1000 * SEC + 3 * INTERVAL);
	ck_assert_uint_eq(rsb_snapdue_at(&due), BEGIN + 1000 * SEC + 6 * INTERVAL);
}
END_TEST

START_TEST(what_fails_is_tried_less_and_less)
{
	uint64_t now_ns = BEGIN + SEC;
	uint64_t last_ns = 0;

	begin();
	tell(2, 0, now_ns);
	for (unsigned int i = 0; i < 20; i++) {
		uint64_t at_ns = rsb_snapdue_at(&due);

		ck_assert_uint_ge(at_ns, now_ns);
		ck_assert_uint_le(at_ns - now_ns, RSB_SNAPDUE_FAILED_MAX_NS);
		ck_assert(i < 2 || at_ns - now_ns >= last_ns);
		last_ns = at_ns - now_ns;
		now_ns = at_ns;
		take(now_ns, now_ns, false, -ENOSPC);
	}
	ck_assert_uint_eq(last_ns, RSB_SNAPDUE_FAILED_MAX_NS);
	take(now_ns, now_ns, false, 0);
	ck_assert_uint_eq(rsb_snapdue_at(&due), 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { what_was_before_is_kept_first, only_dirty_time_counts,
		not_while_it_is_not_reached, while_commands_run_and_when_the_last_has_ended,
		many_short_commands_do_not_make_many, what_was_under_way_is_not_kept,
		what_fails_is_tried_less_and_less };

	return unit_run("snapdue", tests, RSB_ARRAY_SIZE(tests));
}
