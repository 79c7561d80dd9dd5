/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "util/ignore.h"

static bool
matches(const char *patterns, const char *path, bool is_dir)
{
	RSB_CLEANUP(rsb_ignore_freep) struct rsb_ignore *ignore = NULL;

	ck_assert_int_eq(rsb_ignore_new(&ignore), 0);
	ck_assert_int_eq(rsb_ignore_add_text(ignore, rsb_bytes_str(patterns)), 0);
	return rsb_ignore_match(ignore, path, is_dir);
}

/* Rows as of gitignore(5). */
START_TEST(matches_as_git_does)
{
	static const struct {
		const char *patterns;
		const char *path;
		bool is_dir;
		bool match;
	} cases[] = {
		{ "node_modules", "node_modules", true, true },
		{ "node_modules", "a/b/node_modules", true, true },
		{ "node_modules", "node_modules2", true, false },
		{ "*.o", "a/x.o", false, true },
		{ "*.o", "x.oo", false, false },
		{ "/top", "top", false, true },
		{ "/top", "a/top", false, false },
		{ "a/b", "a/b", false, true },
		{ "a/b", "x/a/b", false, false },
		{ "dir/", "dir", true, true },
		{ "dir/", "dir", false, false },
		{ "dir/", "x/dir", true, true },
		{ "**/foo", "foo", false, true },
		{ "**/foo", "a/b/foo", false, true },
		{ "a/**", "a/b/c", false, true },
		{ "a/**", "a", true, false },
		{ "a/**/z", "a/z", false, true },
		{ "a/**/z", "a/b/c/z", false, true },
		{ "a/**/z", "b/z", false, false },
		{ "a/*", "a/b", false, true },
		{ "a/*", "a/b/c", false, false },
		{ "?x[0-9]", "ax7", false, true },
		{ "?x[!0-9]", "ax7", false, false },
		{ "[]x]", "]", false, true },
		{ "[![:digit:]]", "7", false, false },
		{ "\\[x", "[x", false, true },
		{ "*.c\n!keep.c", "keep.c", false, false },
		{ "*.c\n!keep.c", "other.c", false, true },
		{ "!keep.c\n*.c", "keep.c", false, true },
		{ "# comment\n\n  ", "# comment", false, false },
		{ "\\#name", "#name", false, true },
		{ "trail  ", "trail", false, true },
		{ "trail\\ ", "trail ", false, true },
		{ "line\r\nnext\r\n", "line", false, true },
		{ "\xff*", "\xff\xfe", false, true },
		{ ".*", ".hidden", false, true },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++)
		ck_assert_msg(matches(cases[i].patterns, cases[i].path, cases[i].is_dir) ==
				      cases[i].match,
			"row %zu: %s on %s", i, cases[i].patterns, cases[i].path);
}
END_TEST

START_TEST(bounds_patterns)
{
	RSB_CLEANUP(rsb_ignore_freep) struct rsb_ignore *ignore = NULL;
	static const char *const open[] = { "[x", "a[", "a/[!]", "[a/b]", "[[:alpha:]", "x[\\]" };
	static char large[5000];

	ck_assert_int_eq(rsb_ignore_new(&ignore), 0);
	ck_assert_int_eq(
		rsb_ignore_add(ignore, rsb_bytes_str("a/**/b/**/c/**/d/**/e/**/f")), -EINVAL);
	memset(large, 'x', sizeof large - 1);
	ck_assert_int_eq(rsb_ignore_add(ignore, rsb_bytes_str(large)), -EINVAL);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(open); i++)
		ck_assert_msg(
			rsb_ignore_add(ignore, rsb_bytes_str(open[i])) == -EINVAL, "%s", open[i]);
	for (size_t i = 0; i < RSB_IGNORE_PATTERNS_MAX; i++)
		ck_assert_int_eq(rsb_ignore_add(ignore, rsb_bytes_str("x")), 0);
	ck_assert_int_eq(rsb_ignore_add(ignore, rsb_bytes_str("x")), -ENOSPC);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { matches_as_git_does, bounds_patterns };

	return unit_run("ignore", tests, RSB_ARRAY_SIZE(tests));
}
