/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "fuse/losses.h"
#include "tests/unit/unit.h"

static void
says(struct rsb_shared *shared, const char *kind, const char *text)
{
	char got[RSB_SHARED_LOSS_MAX];
	const char *got_kind = rsb_losses_say(shared, got, sizeof(got));

	ck_assert_ptr_nonnull(got_kind);
	ck_assert_str_eq(got_kind, kind);
	ck_assert_str_eq(got, text);
}

static bool
is_all_said(struct rsb_shared *shared)
{
	char got[RSB_SHARED_LOSS_MAX];

	return !rsb_losses_say(shared, got, sizeof(got));
}

/* What the next rsb-exec gets: how many, and of these the first. */
static size_t
told(struct rsb_shared *shared, const char *text, int64_t more)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *object = rsb_json_new_object();
	struct rsb_json *losses;
	const char *first;
	int64_t n;

	ck_assert_int_eq(rsb_losses_tell(shared, object), 0);
	if (rsb_json_get(object, "losses", &losses) < 0)
		return 0;
	ck_assert_int_eq(rsb_json_str(rsb_json_at(losses, 0), "text", &first), 0);
	ck_assert_str_eq(first, text);
	ck_assert_int_eq(rsb_json_i64(object, "more", &n), 0);
	ck_assert_int_eq(n, more);
	return rsb_json_len(losses);
}

START_TEST(says_each_once_to_each)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();
	struct rsb_shared *shared;

	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	ck_assert(is_all_said(shared));
	ck_assert_uint_eq(told(shared, "", 0), 0);
	rsb_losses_add(shared, RSB_LOSS_LOST, "a command that somebody waits for", true);
	ck_assert_uint_eq(told(shared, "", 0), 0);
	rsb_losses_add(shared, RSB_LOSS_UNKNOWN, "mkdir x", false);
	rsb_losses_add(shared, RSB_LOSS_LOST, "y was locked", false);
	says(shared, "lost", "a command that somebody waits for");
	says(shared, "unknown", "mkdir x");
	ck_assert_uint_eq(told(shared, "mkdir x", 0), 2);
	ck_assert_uint_eq(told(shared, "", 0), 0);
	says(shared, "lost", "y was locked");
	ck_assert(is_all_said(shared));
	ck_assert_int_eq(rsb_losses_list(shared, array), 0);
	ck_assert_uint_eq(rsb_json_len(array), 3);
	rsb_shared_free(shared);
}
END_TEST

static void
add(struct rsb_shared *shared, unsigned int n)
{
	char text[16];

	for (unsigned int i = 0; i < n; i++) {
		(void)snprintf(text, sizeof(text), "%u", i);
		rsb_losses_add(shared, RSB_LOSS_LOST, text, false);
	}
}

START_TEST(counts_what_gave_way)
{
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *array = rsb_json_new_array();
	struct rsb_shared *shared;

	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	add(shared, RSB_SHARED_LOSSES_MAX + 5);
	says(shared, "unknown",
		"5 changes, files or commands besides are lost, or may have been done or not");
	says(shared, "lost", "5");
	ck_assert_uint_eq(told(shared, "5", RSB_SHARED_LOSSES_MAX + 5 - RSB_LOSSES_TOLD_MAX),
		RSB_LOSSES_TOLD_MAX);
	ck_assert_int_eq(rsb_losses_list(shared, array), 0);
	ck_assert_uint_eq(rsb_json_len(array), RSB_LOSSES_TOLD_MAX);
	rsb_shared_free(shared);
	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	add(shared, RSB_SHARED_LOSSES_MAX + 1);
	says(shared, "unknown",
		"1 change, file or command besides is lost, or may have been done or not");
	rsb_shared_free(shared);
}
END_TEST

/* A daemon was killed while it wrote one. */
START_TEST(believes_no_half_of_one)
{
	struct rsb_shared *shared;

	ck_assert_int_eq(rsb_shared_new(&shared, NULL), 0);
	rsb_losses_add(shared, RSB_LOSS_LOST, "one", false);
	rsb_losses_add(shared, RSB_LOSS_LOST, "two", false);
	shared->losses[1].number = 0;
	says(shared, "lost", "two");
	ck_assert_uint_eq(told(shared, "two", 0), 1);
	rsb_shared_free(shared);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		says_each_once_to_each,
		counts_what_gave_way,
		believes_no_half_of_one,
	};

	return unit_run("mount-losses", tests, RSB_ARRAY_SIZE(tests));
}
