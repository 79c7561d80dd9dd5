/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "fuse/held.h"
#include "tests/unit/unit.h"

static const struct rsb_bytes text = { (const uint8_t *)"text", 4 };

START_TEST(tells_what_is_new)
{
	struct rsb_held_set set;

	rsb_held_init(&set);
	ck_assert(rsb_held_add(&set, "a", "x", &text));
	ck_assert(!rsb_held_add(&set, "a", "x", &text));
	ck_assert(rsb_held_add(&set, "a", "y", NULL));
	ck_assert_uint_eq(set.n, 1);
	rsb_held_remove(&set, "a");
	rsb_held_remove(&set, "a");
	ck_assert_uint_eq(set.n, 0);
	ck_assert_uint_eq(set.size, 0);
	rsb_held_done(&set);
}
END_TEST

START_TEST(walks_a_subtree)
{
	struct rsb_list *cursor = NULL;
	struct rsb_held *held;
	struct rsb_held_set set;

	rsb_held_init(&set);
	ck_assert(rsb_held_add(&set, "ab", "x", &text));
	ck_assert(rsb_held_add(&set, "a/b", "x", &text));
	ck_assert(rsb_held_add(&set, "a", "x", NULL));
	held = rsb_held_next(&set, "a", &cursor);
	ck_assert_str_eq(held->path, "a");
	ck_assert(held->fixed);
	rsb_held_remove(&set, "a");
	held = rsb_held_next(&set, "a", &cursor);
	ck_assert_str_eq(held->path, "a/b");
	ck_assert_uint_eq(held->size, 4);
	ck_assert_ptr_null(rsb_held_next(&set, "a", &cursor));
	cursor = NULL;
	ck_assert_ptr_nonnull(rsb_held_next(&set, "", &cursor));
	rsb_held_done(&set);
}
END_TEST

START_TEST(is_bounded)
{
	struct rsb_held_set set;
	char path[16];

	rsb_held_init(&set);
	for (unsigned int i = 0; i < RSB_HELD_MAX + 5; i++) {
		(void)snprintf(path, sizeof(path), "%u", i);
		ck_assert(rsb_held_add(&set, path, "x", &text));
	}
	ck_assert_uint_eq(set.n, RSB_HELD_MAX);
	ck_assert(rsb_held_add(&set, "4", "x", &text));
	ck_assert(!rsb_held_add(&set, "10", "x", &text));
	rsb_held_done(&set);
}
END_TEST

START_TEST(tells_bytes_as_text)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();
	struct rsb_list *cursor = NULL;
	char path[2 * RSB_HELD_TEXT_MAX];
	struct rsb_held_set set;
	const char *told;

	rsb_held_init(&set);
	ck_assert(rsb_held_add(&set, "a\xff\x1b[1m\\", "x", &text));
	ck_assert_int_eq(rsb_held_tell(rsb_held_next(&set, "", &cursor), array), 0);
	ck_assert_int_eq(rsb_json_str(rsb_json_at(array, 0), "path", &told), 0);
	ck_assert_str_eq(told, "a\\xff\\x1b[1m\\x5c");
	memset(path, 'p', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	ck_assert(rsb_held_add(&set, path, "x", &text));
	cursor = NULL;
	ck_assert_int_eq(rsb_held_tell(rsb_held_next(&set, "", &cursor), array), 0);
	ck_assert_int_eq(rsb_json_str(rsb_json_at(array, 1), "path", &told), 0);
	ck_assert_uint_le(strlen(told), RSB_HELD_TEXT_MAX + 3);
	rsb_held_done(&set);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		tells_what_is_new,
		walks_a_subtree,
		is_bounded,
		tells_bytes_as_text,
	};

	return unit_run("mount-held", tests, RSB_ARRAY_SIZE(tests));
}
