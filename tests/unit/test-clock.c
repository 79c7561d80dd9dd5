/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "util/clock.h"
#include "util/localtime.h"

#define SEC RSB_NSEC_PER_SEC

static const struct {
	const char *text;
	uint64_t sec;
	uint64_t nsec;
} good[] = {
	{ "1970-01-01T00:00:00Z", 0, 0 },
	{ "1970-01-01T00:00:00.5Z", 0, 500000000 },
	{ "2000-02-29T12:00:00Z", 951825600, 0 },
	{ "2024-12-31T23:59:59.123456789Z", 1735689599, 123456789 },
	{ "2024-12-31T23:59:59.1234567899999Z", 1735689599, 123456789 },
	{ "2026-08-21T10:00:00.123456Z", 1787306400, 123456000 },
	{ "2026-08-21t12:30:00+02:30", 1787306400, 0 },
	{ "2026-08-21 09:59:00-00:01", 1787306400, 0 },
	{ "2016-12-31T23:59:60Z", 1483228800, 0 },
	{ "2100-03-01T00:00:00z", 4107542400, 0 },
	{ "2554-01-01T00:00:00Z", UINT64_C(18429292800), 0 },
};

static const char *const bad[] = {
	"",
	"2026",
	"2026-08-21",
	"2026-08-21T10:00Z",
	"2026-08-21T10:00:00",
	"2026-08-21T10:00:00.Z",
	"2026-08-21T10:00:00Zx",
	"2026-08-21T10:00:00+0200",
	"2026-08-21T10:00:00+24:00",
	"2026-13-01T00:00:00Z",
	"2026-00-01T00:00:00Z",
	"2026-02-29T00:00:00Z",
	"2100-02-29T00:00:00Z",
	"2026-04-31T00:00:00Z",
	"2026-01-00T00:00:00Z",
	"2026-08-21T24:00:00Z",
	"2026-08-21T10:60:00Z",
	"2026-08-21T10:00:61Z",
	"1969-12-31T23:59:59Z",
	"1970-01-01T00:00:00+00:01",
	"9999-01-01T00:00:00Z",
	"+026-08-21T10:00:00Z",
};

START_TEST(parses_times_with_fraction_and_offset)
{
	uint64_t ns;
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(good); i++) {
		ck_assert_int_eq(rsb_clock_parse_rfc3339(good[i].text, &ns), 0);
		ck_assert_uint_eq(ns, good[i].sec * SEC + good[i].nsec);
	}
}
END_TEST

START_TEST(refuses_what_is_no_time)
{
	uint64_t ns = 7;
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(bad); i++)
		if (rsb_clock_parse_rfc3339(bad[i], &ns) != -EINVAL)
			ck_abort_msg("took '%s'", bad[i]);
	ck_assert_uint_eq(ns, 7);
}
END_TEST

START_TEST(prints_what_it_parses)
{
	char text[RSB_RFC3339_SIZE];
	uint64_t day, ns;

	rsb_clock_rfc3339(UINT64_C(1787306400123456789), text);
	ck_assert_str_eq(text, "2026-08-21T10:00:00.123456Z");
	/* Every day of two cycles of leap years. */
	for (day = 0; day < UINT64_C(200000); day++) {
		rsb_clock_rfc3339((day * 86400 + 1) * SEC, text);
		if (rsb_clock_parse_rfc3339(text, &ns) < 0 || ns != (day * 86400 + 1) * SEC)
			ck_abort_msg("day %u became %s", (unsigned int)day, text);
	}
}
END_TEST

START_TEST(goes_forward)
{
	const struct rsb_clock *clock = rsb_clock_monotonic();
	uint64_t a = rsb_now_ns();
	uint64_t b = rsb_clock_now(clock);

	ck_assert_uint_gt(a, 0);
	ck_assert_uint_ge(b, a);
	ck_assert_uint_gt(rsb_wall_ns(), UINT64_C(1700000000) * SEC);
}
END_TEST

START_TEST(tells_a_person_the_local_time)
{
	const uint64_t now = UINT64_C(1787306400) * SEC; /* 2026-08-21, 10:00 in UTC */
	const uint64_t hour = 3600 * SEC;
	char text[RSB_LOCALTIME_SIZE];

	ck_assert_int_eq(setenv("TZ", "ABC-02:30", 1), 0);
	rsb_localtime(now + 5 * SEC, now, text);
	ck_assert_str_eq(text, "12:30");
	rsb_localtime(now + 11 * hour, now, text);
	ck_assert_str_eq(text, "23:30");
	rsb_localtime(now + 12 * hour, now, text);
	ck_assert_str_eq(text, "2026-08-22 00:30");
	rsb_localtime(now + 365 * 24 * hour, now, text);
	ck_assert_str_eq(text, "2027-08-21 12:30");
	rsb_localtime(UINT64_MAX, now, text);
	ck_assert_uint_gt(strlen(text), 10);
	rsb_localtime_full(now + 12 * hour + 7 * SEC, text);
	ck_assert_str_eq(text, "2026-08-22 00:30:07");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		parses_times_with_fraction_and_offset,
		refuses_what_is_no_time,
		prints_what_it_parses,
		goes_forward,
		tells_a_person_the_local_time,
	};

	return unit_run("clock", tests, RSB_ARRAY_SIZE(tests));
}
