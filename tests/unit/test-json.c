/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "util/json.h"

static struct rsb_json *
parse(const char *text)
{
	struct rsb_json *json = NULL;
	struct rsb_diag diag = { "" };

	if (rsb_json_parse(rsb_bytes_str(text), &json, &diag) < 0)
		ck_abort_msg("%s", diag.text);
	return json;
}

START_TEST(reads_members_by_path)
{
	RSB_CLEANUP(rsb_json_freep)
	struct rsb_json *json =
		parse("{\"a\":{\"b\":{\"s\":\"x\",\"n\":-7,\"t\":true,\"f\":false}}}");
	struct rsb_json *inner = NULL;
	const char *s = NULL;
	int64_t n = 0;
	bool t = false;
	bool f = true;

	ck_assert_int_eq(rsb_json_str(json, "a.b.s", &s), 0);
	ck_assert_str_eq(s, "x");
	ck_assert_int_eq(rsb_json_i64(json, "a.b.n", &n), 0);
	ck_assert_int_eq(n, -7);
	ck_assert_int_eq(rsb_json_bool(json, "a.b.t", &t), 0);
	ck_assert_int_eq(rsb_json_bool(json, "a.b.f", &f), 0);
	ck_assert(t && !f);
	ck_assert_int_eq(rsb_json_get(json, "a.b", &inner), 0);
	ck_assert_uint_eq(rsb_json_len(inner), 4);
	ck_assert_int_eq(rsb_json_str(inner, "s", &s), 0);
}
END_TEST

START_TEST(tells_absent_from_another_type)
{
	RSB_CLEANUP(rsb_json_freep)
	struct rsb_json *json = parse("{\"s\":\"x\",\"z\":null,\"r\":1.5,\"a\":[1]}");
	struct rsb_json *value = NULL;
	const char *s = NULL;
	int64_t n = 0;
	bool b;

	ck_assert_int_eq(rsb_json_str(json, "none", &s), -ENOENT);
	ck_assert_int_eq(rsb_json_str(json, "z", &s), -ENOENT);
	ck_assert_int_eq(rsb_json_str(json, "z.s", &s), -ENOENT);
	ck_assert_int_eq(rsb_json_str(json, "none.s", &s), -ENOENT);
	ck_assert_int_eq(rsb_json_str(json, "s.s", &s), -EBADMSG);
	ck_assert_int_eq(rsb_json_i64(json, "s", &n), -EBADMSG);
	ck_assert_int_eq(rsb_json_i64(json, "r", &n), -EBADMSG);
	ck_assert_int_eq(rsb_json_bool(json, "s", &b), -EBADMSG);
	ck_assert_int_eq(rsb_json_str(json, "a", &s), -EBADMSG);
	ck_assert_int_eq(rsb_json_get(json, "s", &value), -EBADMSG);
	ck_assert_ptr_null(s);
}
END_TEST

START_TEST(walks_arrays_and_objects_in_their_order)
{
	RSB_CLEANUP(rsb_json_freep)
	struct rsb_json *json = parse("{\"z\":1,\"a\":2,\"m\":[\"x\",5]}");
	struct rsb_json *value = NULL;
	struct rsb_json *list = NULL;
	void *cursor = NULL;
	int64_t n = 0;

	ck_assert_str_eq(rsb_json_member(json, &cursor, &value), "z");
	ck_assert_int_eq(rsb_json_i64(value, "", &n), 0);
	ck_assert_int_eq(n, 1);
	ck_assert_str_eq(rsb_json_member(json, &cursor, &value), "a");
	ck_assert_str_eq(rsb_json_member(json, &cursor, &value), "m");
	ck_assert_ptr_null(rsb_json_member(json, &cursor, &value));
	ck_assert_ptr_null(rsb_json_member(json, &cursor, &value));

	ck_assert_int_eq(rsb_json_get(json, "m", &list), 0);
	ck_assert(rsb_json_is_array(list) && !rsb_json_is_object(list));
	ck_assert_uint_eq(rsb_json_len(list), 2);
	ck_assert_str_eq(rsb_json_as_str(rsb_json_at(list, 0)), "x");
	ck_assert_ptr_null(rsb_json_as_str(rsb_json_at(list, 1)));
	ck_assert_ptr_null(rsb_json_at(list, 2));
	cursor = NULL;
	ck_assert_ptr_null(rsb_json_member(list, &cursor, &value));
}
END_TEST

START_TEST(refuses_bad_text_and_says_where)
{
	static const char *const bad[] = { "", " ", "{", "{}x", "{\"a\":1,\"a\":2}", "[1,]", "nul",
		"{'a':1}", "[\"\\u0000\"]", "[\"\xff\"]", "[\"\\ud800\"]", "99999999999999999999" };
	struct rsb_json *json = NULL;
	struct rsb_diag diag;
	size_t i;

	for (i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		diag.text[0] = '\0';
		if (rsb_json_parse(rsb_bytes_str(bad[i]), &json, &diag) != -EBADMSG)
			ck_abort_msg("took '%s'", bad[i]);
		ck_assert_ptr_nonnull(strstr(diag.text, "line 1"));
	}
	ck_assert_int_eq(rsb_json_parse((struct rsb_bytes){ 0 }, &json, NULL), -EBADMSG);
	ck_assert_ptr_null(json);
}
END_TEST

START_TEST(is_bounded_in_size_and_depth)
{
	static char deep[100000];
	struct rsb_json *json = NULL;
	const uint8_t byte = '1';

	memset(deep, '[', sizeof(deep) - 1);
	ck_assert_int_eq(rsb_json_parse(rsb_bytes_str(deep), &json, NULL), -EBADMSG);
	ck_assert_int_eq(rsb_json_parse((struct rsb_bytes){ &byte, RSB_JSON_MAX + 1 }, &json, NULL),
		-EMSGSIZE);
}
END_TEST

static void
assert_written(const struct rsb_json *json, bool pretty, const char *expect)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { 0 };
	rsb_autofree char *text = NULL;

	ck_assert_int_eq(rsb_json_write(json, pretty, &buf), 0);
	text = rsb_buf_steal_str(&buf);
	ck_assert_str_eq(text, expect);
}

START_TEST(builds_and_writes)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	struct rsb_json *list = rsb_json_new_array();

	ck_assert_int_eq(rsb_json_set_str(json, "s", "a\"\xc3\xa4\n"), 0);
	ck_assert_int_eq(rsb_json_set_i64(json, "n", INT64_MIN), 0);
	ck_assert_int_eq(rsb_json_set_bool(json, "b", false), 0);
	ck_assert_int_eq(rsb_json_set_null(json, "z"), 0);
	ck_assert_int_eq(rsb_json_set_i64(list, NULL, 1), 0);
	ck_assert_int_eq(rsb_json_set_str(list, NULL, "x"), 0);
	ck_assert_int_eq(rsb_json_set(json, "l", list), 0);
	assert_written(json, false,
		"{\"s\":\"a\\\"\xc3\xa4\\n\",\"n\":-9223372036854775808,\"b\":false,\"z\":null,"
		"\"l\":[1,\"x\"]}");
	assert_written(list, true, "[\n  1,\n  \"x\"\n]");
}
END_TEST

START_TEST(refuses_what_json_cannot_hold)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = rsb_json_new_object();
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *list = rsb_json_new_array();

	ck_assert_int_eq(rsb_json_set_str(json, "s", "\xff"), -EINVAL);
	ck_assert_int_eq(rsb_json_set_str(json, "\xff", "s"), -EINVAL);
	ck_assert_int_eq(rsb_json_set_str(json, NULL, "s"), -EINVAL);
	ck_assert_int_eq(rsb_json_set_str(list, "s", "s"), -EINVAL);
	ck_assert_int_eq(rsb_json_set(json, "s", NULL), -ENOMEM);
	ck_assert_int_eq(rsb_json_set(list, "s", rsb_json_new_array()), -EINVAL);
	assert_written(json, false, "{}");
	assert_written(list, false, "[]");
}
END_TEST

START_TEST(leaves_the_buffer_alone_when_it_does_not_fit)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = parse("[\"long enough\"]");
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = 10 };

	ck_assert_int_eq(rsb_buf_append(&buf, "abc", 3), 0);
	ck_assert_int_eq(rsb_json_write(json, false, &buf), -EMSGSIZE);
	ck_assert_uint_eq(rsb_buf_len(&buf), 3);
}
END_TEST

START_TEST(lives_as_long_as_its_last_reference)
{
	struct rsb_json *json = parse("[\"x\"]");
	struct rsb_json *second = rsb_json_ref(json);

	rsb_json_free(json);
	ck_assert_str_eq(rsb_json_as_str(rsb_json_at(second, 0)), "x");
	rsb_json_free(second);
	rsb_json_free(NULL);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		reads_members_by_path,
		tells_absent_from_another_type,
		walks_arrays_and_objects_in_their_order,
		refuses_bad_text_and_says_where,
		is_bounded_in_size_and_depth,
		builds_and_writes,
		refuses_what_json_cannot_hold,
		leaves_the_buffer_alone_when_it_does_not_fit,
		lives_as_long_as_its_last_reference,
	};

	return unit_run("json", tests, RSB_ARRAY_SIZE(tests));
}
