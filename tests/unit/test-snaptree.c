/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "keeper/snaptree.h"
#include "tests/unit/unit.h"

#define FILE_MODE (S_IFREG | 0644)
#define DIR_MODE (S_IFDIR | 0755)
#define LINK_MODE (S_IFLNK | 0777)

static void
add(struct rsb_tree *tree, const char *path, uint32_t mode, int64_t ctime_ns)
{
	const struct rsb_tree_leaf leaf = { .path = (char *)path,
		.mode = mode,
		.size = S_ISREG(mode) ? 7 : 0,
		.there = { .ctime_ns = ctime_ns, .mtime_ns = 1, .ino = 1 } };

	ck_assert_int_eq(rsb_tree_add(tree, &leaf), 0);
}

/* "a b/c": the paths with a blank between them; tombstones have a '-' in front. */
static void
expect(const struct rsb_tree *tree, const char *want)
{
	char got[512] = "";

	for (size_t i = 0; i < tree->n; i++) {
		(void)strcat(got, i ? " " : "");
		(void)strcat(got, tree->leaves[i].mode ? "" : "-");
		(void)strcat(got, tree->leaves[i].path);
	}
	ck_assert_str_eq(got, want);
}

static void
expect_diff(const struct rsb_tree *known, const struct rsb_tree *now, const char *changed,
	const char *removed)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree came = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree went = { 0 };

	ck_assert_int_eq(rsb_snaptree_diff(known, now, &came, &went), 0);
	expect(&came, changed);
	expect(&went, removed);
}

START_TEST(what_changed_comes_with_its_directory)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree known = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree now = { 0 };

	add(&known, "a", DIR_MODE, 5);
	add(&known, "a/changed", FILE_MODE, 5);
	add(&known, "a/same", FILE_MODE, 5);
	add(&known, "b", DIR_MODE, 5);
	add(&known, "b/gone", DIR_MODE, 5);
	add(&known, "b/gone/too", FILE_MODE, 5);
	add(&known, "c", DIR_MODE, 5);
	add(&known, "c/same", LINK_MODE, 5);
	add(&known, "pipe", FILE_MODE, 5);
	add(&now, "a", DIR_MODE, 5);
	add(&now, "a/changed", FILE_MODE, 6);
	add(&now, "a/same", FILE_MODE, 5);
	add(&now, "b", DIR_MODE, 5);
	add(&now, "c", DIR_MODE, 5);
	add(&now, "c/new", FILE_MODE, 5);
	add(&now, "c/same", LINK_MODE, 5);
	add(&now, "pipe", S_IFIFO | 0644, 5);
	expect_diff(&known, &now, "a a/changed b c c/new", "-b/gone -b/gone/too -pipe");
	expect_diff(&known, &known, "", "");
}
END_TEST

START_TEST(what_the_sandbox_says_is_sorted)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree said = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree came = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree went = { 0 };

	add(&said, "a", DIR_MODE, 5);
	add(&said, "a/gone", 0, 0);
	add(&said, "a/new", FILE_MODE, 5);
	add(&said, "b", DIR_MODE, 5);
	said.leaves[3].blind = true;
	add(&said, "b/unknown", 0, 0);
	add(&said, "b-gone", 0, 0);
	add(&said, "pipe", S_IFIFO | 0644, 5);
	ck_assert_int_eq(rsb_snaptree_sort(&said, &came, &went), 0);
	expect(&came, "a a/new b");
	expect(&went, "-a/gone -b-gone -pipe");
}
END_TEST

START_TEST(what_is_too_young_to_tell_counts_as_changed)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree known = { 0 };

	add(&known, "a", FILE_MODE, 0);
	expect_diff(&known, &known, "a", "");
}
END_TEST

START_TEST(nobody_knows_what_is_in_a_blind_directory)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree known = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree now = { 0 };

	add(&known, "a", DIR_MODE, 5);
	add(&known, "a/b", DIR_MODE, 5);
	add(&known, "a/b/c", FILE_MODE, 5);
	add(&known, "a-b", FILE_MODE, 5);
	add(&now, "a", DIR_MODE, 5);
	now.leaves[0].blind = true;
	expect_diff(&known, &now, "", "-a-b");
}
END_TEST

START_TEST(deltas_lie_over_their_base)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree tree = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree sum = { 0 };
	struct rsb_tree delta = { 0 };

	add(&tree, "a", DIR_MODE, 5);
	add(&tree, "a/b", FILE_MODE, 5);
	add(&tree, "c", FILE_MODE, 5);
	add(&delta, "a/b", 0, 0);
	add(&delta, "a/d", FILE_MODE, 5);
	ck_assert_int_eq(rsb_snaptree_overlay(&sum, &delta, false), 0);
	add(&delta, "a/b", FILE_MODE, 9);
	add(&delta, "c", 0, 0);
	add(&delta, "never", 0, 0);
	ck_assert_int_eq(rsb_snaptree_overlay(&sum, &delta, false), 0);
	expect(&sum, "a/b a/d -c -never");
	ck_assert_int_eq(rsb_snaptree_overlay(&tree, &sum, true), 0);
	expect(&tree, "a a/b a/d");
	ck_assert_int_eq(tree.leaves[1].there.ctime_ns, 9);
	ck_assert_uint_eq(tree.text, strlen("aa/ba/d"));
	ck_assert_uint_eq(sum.n, 0);
}
END_TEST

START_TEST(what_is_in_the_way_goes_before)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree tree = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree delta = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf paths = { 0 };
	static const char want[] = "was-file\0was-dir/in\0was-dir\0a";

	add(&tree, "a", FILE_MODE, 5);
	add(&tree, "same", FILE_MODE, 5);
	add(&tree, "was-dir", DIR_MODE, 5);
	add(&tree, "was-dir/in", FILE_MODE, 5);
	add(&tree, "was-file", FILE_MODE, 5);
	add(&delta, "a", 0, 0);
	add(&delta, "b", 0, 0);
	add(&delta, "same", LINK_MODE, 5);
	add(&delta, "was-dir", FILE_MODE, 5);
	add(&delta, "was-dir/in", 0, 0);
	add(&delta, "was-file", DIR_MODE, 5);
	ck_assert_int_eq(rsb_snaptree_obstacles(&tree, &delta, &paths), 0);
	ck_assert_uint_eq(rsb_buf_len(&paths), sizeof(want));
	ck_assert_mem_eq(rsb_buf_head(&paths), want, sizeof(want));
}
END_TEST

static void
expect_difference(const struct rsb_tree *want, const struct rsb_tree *got, const char *path)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree other = { 0 };

	add(&other, "left", FILE_MODE, 5);
	ck_assert_pstr_eq(rsb_snaptree_difference(want, &other, got), path);
}

START_TEST(what_came_back_is_compared)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree want = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree got = { 0 };

	add(&want, "a", FILE_MODE, 5);
	add(&want, "b", LINK_MODE, 5);
	add(&got, "a", FILE_MODE, 9);
	add(&got, "b", LINK_MODE, 9);
	add(&got, "dir", DIR_MODE, 9);
	add(&got, "left", FILE_MODE, 9);
	expect_difference(&want, &got, NULL);
	got.leaves[0].size++;
	expect_difference(&want, &got, "a");
	got.leaves[0].size--;
	got.leaves[0].mode ^= 0100;
	expect_difference(&want, &got, "a");
	got.leaves[0].mode ^= 0100;
	got.leaves[0].there.mtime_ns++;
	expect_difference(&want, &got, "a");
	got.leaves[0].there.mtime_ns--;
	got.leaves[1].mode = FILE_MODE;
	expect_difference(&want, &got, "b");
	got.leaves[1].mode = LINK_MODE;
	add(&got, "more", FILE_MODE, 5);
	expect_difference(&want, &got, "more");
	add(&want, "z", FILE_MODE, 5);
	got.n--;
	expect_difference(&want, &got, "z");
	got.n++;
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { what_changed_comes_with_its_directory,
		what_the_sandbox_says_is_sorted, what_is_too_young_to_tell_counts_as_changed,
		nobody_knows_what_is_in_a_blind_directory, deltas_lie_over_their_base,
		what_is_in_the_way_goes_before, what_came_back_is_compared };

	return unit_run("snaptree", tests, RSB_ARRAY_SIZE(tests));
}
