/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "keeper/gitcopy.h"
#include "tests/unit/unit.h"

static void
put(struct rsb_gitcopy *trust, const char *path, const char *text)
{
	ck_assert_int_eq(rsb_gitcopy_put(trust, path, rsb_bytes_str(text)), 0);
}

/* want NULL: there is none. */
static void
check_copy(const struct rsb_gitcopy *trust, const char *path, const char *want)
{
	struct rsb_bytes text;
	bool found = rsb_gitcopy_get(trust, path, &text);

	ck_assert_msg(found == (want != NULL), "%s", path);
	if (!want)
		return;
	ck_assert_uint_eq(text.size, strlen(want));
	ck_assert_int_eq(memcmp(text.data, want, text.size), 0);
}

START_TEST(keeps_the_last_copy)
{
	RSB_CLEANUP(rsb_gitcopy_freep) struct rsb_gitcopy *trust = NULL;
	uint64_t version;

	ck_assert_int_eq(rsb_gitcopy_new(&trust), 0);
	check_copy(trust, "a", NULL);
	version = rsb_gitcopy_version(trust);
	put(trust, "a", "one");
	put(trust, "b", "");
	put(trust, "a", "two");
	ck_assert_uint_gt(rsb_gitcopy_version(trust), version);
	check_copy(trust, "a", "two");
	check_copy(trust, "b", "");
	ck_assert_uint_eq(rsb_gitcopy_count(trust), 2);
}
END_TEST

START_TEST(follows_a_rename)
{
	RSB_CLEANUP(rsb_gitcopy_freep) struct rsb_gitcopy *trust = NULL;

	ck_assert_int_eq(rsb_gitcopy_new(&trust), 0);
	put(trust, "r/.git/config", "1");
	put(trust, "r/.git/hooks/x", "2");
	put(trust, "rr/.git/config", "3");
	put(trust, "n/.git/config", "4");
	ck_assert_int_eq(rsb_gitcopy_move(trust, "r", "n"), 0);
	check_copy(trust, "r/.git/config", NULL);
	check_copy(trust, "n/.git/config", "1");
	check_copy(trust, "n/.git/hooks/x", "2");
	check_copy(trust, "rr/.git/config", "3");
	ck_assert_uint_eq(rsb_gitcopy_count(trust), 3);
	ck_assert_int_eq(rsb_gitcopy_move(trust, "n/.git/config", "n/.git/config"), 0);
	check_copy(trust, "n/.git/config", "1");
}
END_TEST

START_TEST(is_bounded)
{
	RSB_CLEANUP(rsb_gitcopy_freep) struct rsb_gitcopy *trust = NULL;
	char *big = malloc(RSB_GITCOPY_BYTES_MAX);
	char path[32];

	ck_assert_int_eq(rsb_gitcopy_new(&trust), 0);
	for (unsigned int i = 0; i < RSB_GITCOPY_COPIES_MAX + 10; i++) {
		(void)snprintf(path, sizeof(path), "%u", i);
		put(trust, path, path);
	}
	ck_assert_uint_eq(rsb_gitcopy_count(trust), RSB_GITCOPY_COPIES_MAX);
	check_copy(trust, "9", NULL);
	check_copy(trust, "10", "10");
	ck_assert_ptr_nonnull(big);
	memset(big, 'x', RSB_GITCOPY_BYTES_MAX);
	ck_assert_int_eq(rsb_gitcopy_put(trust, "big",
				 (struct rsb_bytes){ (uint8_t *)big, RSB_GITCOPY_BYTES_MAX }),
		0);
	ck_assert_uint_eq(rsb_gitcopy_count(trust), 1);
	free(big);
}
END_TEST

START_TEST(survives_on_disk)
{
	RSB_CLEANUP(rsb_gitcopy_freep) struct rsb_gitcopy *trust = NULL;
	RSB_CLEANUP(rsb_gitcopy_freep) struct rsb_gitcopy *again = NULL;
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { 0 };

	ck_assert_int_eq(rsb_gitcopy_new(&trust), 0);
	ck_assert_int_eq(rsb_gitcopy_new(&again), 0);
	put(trust, "a/\xff", "text\n");
	put(trust, "b", "");
	ck_assert_int_eq(rsb_gitcopy_write(trust, &data), 0);
	ck_assert_int_eq(rsb_gitcopy_read(again, rsb_buf_view(&data)), 0);
	check_copy(again, "a/\xff", "text\n");
	check_copy(again, "b", "");
	/* What is cut short, or something else, is refused. */
	for (size_t n = 0; n < rsb_buf_len(&data); n++) {
		RSB_CLEANUP(rsb_gitcopy_freep) struct rsb_gitcopy *cut = NULL;
		int r;

		ck_assert_int_eq(rsb_gitcopy_new(&cut), 0);
		r = rsb_gitcopy_read(cut, (struct rsb_bytes){ rsb_buf_head(&data), n });
		ck_assert(r == -EBADMSG || rsb_gitcopy_count(cut) < 2);
	}
	ck_assert_int_eq(rsb_gitcopy_load(again, "/nonexistent/trust"), 0);
	ck_assert_int_eq(rsb_gitcopy_load(again, "/dev/null"), -EBADMSG);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		keeps_the_last_copy,
		follows_a_rename,
		is_bounded,
		survives_on_disk,
	};

	return unit_run("gitcopy", tests, RSB_ARRAY_SIZE(tests));
}
