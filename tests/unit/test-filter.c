/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "sidecar/local/filter.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"

static struct rsb_json *
object(const char *text)
{
	struct rsb_json *json;

	ck_assert_int_eq(rsb_json_parse(rsb_bytes_str(text), &json, NULL), 0);
	return json;
}

static bool
matches(const char *query, const char *metadata)
{
	RSB_CLEANUP(rsb_filter_done) struct rsb_filter filter = { 0 };
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = metadata ? object(metadata) : NULL;
	struct rsb_filter_query q = { .metadata = query };

	ck_assert_int_eq(rsb_filter_read(&q, &filter, NULL), 0);
	return rsb_filter_match(&filter, json, false);
}

START_TEST(matches_pairs_encoded_twice_more)
{
	ck_assert(matches(NULL, NULL));
	ck_assert(matches("", "{}"));
	ck_assert(matches("a=b", "{\"a\":\"b\",\"c\":\"d\"}"));
	ck_assert(matches("a=b&c=d", "{\"a\":\"b\",\"c\":\"d\"}"));
	ck_assert(matches("a%2520b=c%2526d", "{\"a b\":\"c&d\"}"));
	ck_assert(matches("k.x=1", "{\"k.x\":\"1\"}"));
	ck_assert(matches("a%253Db=", "{\"a=b\":\"\"}"));
	ck_assert(!matches("a=b", NULL));
	ck_assert(!matches("a=b", "{}"));
	ck_assert(!matches("a=b&c=e", "{\"a\":\"b\",\"c\":\"d\"}"));
	ck_assert(!matches("k.x=1", "{\"k\":{\"x\":\"1\"}}"));
}
END_TEST

START_TEST(reads_states_and_pages)
{
	struct rsb_filter_query q = {
		.state = "paused", .order = "asc", .limit = "7", .next_token = "i1"
	};
	struct rsb_filter filter;

	ck_assert_int_eq(rsb_filter_read(&q, &filter, NULL), 0);
	ck_assert(!filter.running && filter.paused && filter.ascending);
	ck_assert_uint_eq(filter.limit, 7);
	ck_assert_str_eq(filter.after, "i1");
	ck_assert(!rsb_filter_match(&filter, NULL, false));
	ck_assert(rsb_filter_match(&filter, NULL, true));
	q = (struct rsb_filter_query){ .state = "paused,running" };
	ck_assert_int_eq(rsb_filter_read(&q, &filter, NULL), 0);
	ck_assert(filter.running && filter.paused && !filter.ascending);
	ck_assert_uint_eq(filter.limit, RSB_FILTER_LIMIT_MAX);
}
END_TEST

START_TEST(refuses_what_it_cannot_read)
{
	const struct rsb_filter_query bad[] = {
		{ .state = "odd" },
		{ .state = "running,odd" },
		{ .order = "up" },
		{ .limit = "0" },
		{ .limit = "101" },
		{ .limit = "-1" },
		{ .limit = "" },
		{ .metadata = "novalue" },
		{ .metadata = "a=b=c" },
		{ .metadata = "a=%" },
		{ .metadata = "a=%2" },
		{ .metadata = "a=%zz" },
		{ .metadata = "a=%00" },
		{ .metadata = "a=%2500" },
		{ .metadata = "a=%25ff" },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		struct rsb_filter filter;
		struct rsb_diag diag = { "" };

		ck_assert_int_eq(rsb_filter_read(&bad[i], &filter, &diag), -EINVAL);
		ck_assert(diag.text[0] != '\0');
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		matches_pairs_encoded_twice_more,
		reads_states_and_pages,
		refuses_what_it_cannot_read,
	};

	return unit_run("filter", tests, RSB_ARRAY_SIZE(tests));
}
