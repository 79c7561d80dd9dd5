/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/manifest.h"
#include "keeper/treelist.h"
#include "proto/codec.h"
#include "proto/version.h"
#include "tests/unit/unit.h"

static void
add(struct rsb_tree *tree, const char *path, uint32_t mode, uint64_t ino)
{
	struct rsb_tree_leaf leaf = { .path = (char *)path,
		.target = (char *)(S_ISLNK(mode) ? "to" : ""),
		.mode = mode,
		.size = 7,
		.hashed = S_ISREG(mode),
		.here = { .mtime_ns = -1, .ctime_ns = 5, .ino = ino } };

	ck_assert_int_eq(rsb_tree_add(tree, &leaf), 0);
}

static void
make(struct rsb_tree *tree)
{
	add(tree, "a", S_IFDIR | 0755, 1);
	add(tree, "a/\xff\n", S_IFREG | 0644, 2);
	add(tree, "a-b", S_IFLNK | 0777, 3);
	tree->leaves[1].conflict = true;
}

START_TEST(comes_back_as_it_was)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree tree = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree again = { 0 };
	char dir[] = "/tmp/rsb-manifest.XXXXXX";
	char path[64];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(rsb_manifest_load(dir, &again), -ENOENT);
	make(&tree);
	ck_assert_int_eq(rsb_manifest_save(dir, &tree, false), 0);
	ck_assert_int_eq(rsb_manifest_load(dir, &again), 0);
	ck_assert_uint_eq(again.n, tree.n);
	for (size_t i = 0; i < tree.n; i++) {
		ck_assert_str_eq(again.leaves[i].path, tree.leaves[i].path);
		ck_assert_str_eq(again.leaves[i].target, tree.leaves[i].target);
		ck_assert(rsb_tree_is_same(&again.leaves[i], &tree.leaves[i]));
		ck_assert(rsb_stamp_is_same(&again.leaves[i].here, &tree.leaves[i].here));
		ck_assert_int_eq(again.leaves[i].conflict, tree.leaves[i].conflict);
	}
	ck_assert_ptr_eq(rsb_tree_find(&again, "a-b"), &again.leaves[2]);
	ck_assert_ptr_null(rsb_tree_find(&again, "a/b"));
	(void)snprintf(path, sizeof(path), "%s/" RSB_MANIFEST_FILE, dir);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

static ino_t
inode_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_ino;
}

START_TEST(is_written_only_when_it_says_something_new)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree tree = { 0 };
	char dir[] = "/tmp/rsb-manifest.XXXXXX";
	char path[64];
	ino_t ino;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/" RSB_MANIFEST_FILE, dir);
	make(&tree);
	ck_assert_int_eq(rsb_manifest_save(dir, &tree, true), 0);
	ino = inode_of(path);
	ck_assert_int_eq(rsb_manifest_save(dir, &tree, true), 0);
	ck_assert_uint_eq(inode_of(path), ino);
	ck_assert_int_eq(rsb_manifest_save(dir, &tree, false), 0);
	ck_assert_uint_ne(inode_of(path), ino);
	ino = inode_of(path);
	tree.leaves[1].conflict = false;
	ck_assert_int_eq(rsb_manifest_save(dir, &tree, true), 0);
	ck_assert_uint_ne(inode_of(path), ino);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(damage_of_any_byte_or_length_is_found)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree tree = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	struct rsb_tree again = { 0 };
	uint8_t copy[4096];

	make(&tree);
	ck_assert_int_eq(rsb_manifest_write(&tree, &out), 0);
	ck_assert_uint_le(rsb_buf_len(&out), sizeof(copy));
	for (size_t i = 0; i < rsb_buf_len(&out); i++) {
		struct rsb_bytes bytes = { .data = copy, .size = rsb_buf_len(&out) };

		memcpy(copy, rsb_buf_head(&out), rsb_buf_len(&out));
		copy[i] ^= 1;
		ck_assert_int_eq(rsb_manifest_read(bytes, &again), -EBADMSG);
		copy[i] ^= 1;
		bytes.size = i;
		ck_assert_int_eq(rsb_manifest_read(bytes, &again), -EBADMSG);
		ck_assert_uint_eq(again.n, 0);
	}
}
END_TEST

/* These paths, all of the same mode. */
static int
feed(struct rsb_treelist *list, const char *const *paths, uint64_t mode)
{
	int r = 0;

	for (; *paths && r == 0; paths++) {
		RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
		struct rsb_leaf leaf = { .path = rsb_bytes_str(*paths), .mode = mode };
		uint8_t head[4] = { 0 };

		ck_assert_int_eq(
			rsb_codec_encode(&rsb_desc_rsb_leaf, &leaf, RSB_PROTO_VERSION, &out), 0);
		head[0] = (uint8_t)rsb_buf_len(&out);
		r = rsb_treelist_feed(list, (struct rsb_bytes){ .data = head, .size = 4 });
		/* In any pieces. */
		for (size_t i = 0; i < rsb_buf_len(&out) && r == 0; i++)
			r = rsb_treelist_feed(list,
				(struct rsb_bytes){ .data = (const uint8_t *)rsb_buf_head(&out) + i,
					.size = 1 });
	}
	return r == 0 ? rsb_treelist_end(list) : r;
}

/* The errno of a list. */
static int
list(const char *const *paths, uint64_t mode)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree tree = { 0 };
	RSB_CLEANUP(rsb_treelist_done) struct rsb_treelist list;

	rsb_treelist_init(&list, &tree);
	return feed(&list, paths, mode);
}

START_TEST(a_hostile_list_is_refused)
{
	const uint64_t dir = S_IFDIR | 0755;

	ck_assert_int_eq(list((const char *[]){ "a", "a/b", "a/b/c", "a-b", NULL }, dir), 0);
	ck_assert_int_eq(list((const char *[]){ "a", "a/b", NULL }, S_IFREG | 0644), -EBADMSG);
	ck_assert_int_eq(list((const char *[]){ "b", "a", NULL }, dir), -EBADMSG);
	ck_assert_int_eq(list((const char *[]){ "a", "a", NULL }, dir), -EBADMSG);
	ck_assert_int_eq(list((const char *[]){ "a/b", NULL }, dir), -EBADMSG);
	ck_assert_int_eq(list((const char *[]){ "..", NULL }, dir), -EBADMSG);
	ck_assert_int_eq(list((const char *[]){ "a", "a/../b", NULL }, dir), -EBADMSG);
	ck_assert_int_eq(list((const char *[]){ "/a", NULL }, dir), -EBADMSG);
	ck_assert_int_eq(list((const char *[]){ "a/", NULL }, dir), -EBADMSG);
	ck_assert_int_eq(list((const char *[]){ "", NULL }, dir), -EBADMSG);
	ck_assert_int_eq(list((const char *[]){ "a", NULL }, 0), -EBADMSG);
}
END_TEST

/* What comes as changes; whole: whether it would do as a list, too. */
static int
list_changes(const char *const *paths, uint64_t mode, bool whole)
{
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree tree = { 0 };
	RSB_CLEANUP(rsb_treelist_done) struct rsb_treelist list;
	int r;

	rsb_treelist_init(&list, &tree);
	list.partial = true;
	r = feed(&list, paths, mode);
	return r == 0 && whole ? rsb_treelist_check_whole(&list) : r;
}

START_TEST(hostile_changes_are_refused)
{
	static const char *const there[] = { "a", "a/b", "c", NULL };
	static const char *const below[] = { "a/b", "c/d/e", NULL };
	const uint64_t dir = S_IFDIR | 0755;
	const uint64_t file = S_IFREG | 0644;

	/* Names without their directories, and those that went, are changes, but no list. */
	ck_assert_int_eq(list_changes(below, file, false), 0);
	ck_assert_int_eq(list_changes(below, file, true), -EBADMSG);
	ck_assert_int_eq(list_changes(below, 0, false), 0);
	ck_assert_int_eq(list_changes(there, 0, false), 0);
	ck_assert_int_eq(list_changes(there, 0, true), -EBADMSG);
	ck_assert_int_eq(list_changes(there, dir, true), 0);
	/* But what is in the list as a file has nothing in it. */
	ck_assert_int_eq(list_changes(there, file, false), -EBADMSG);
	ck_assert_int_eq(list_changes((const char *[]){ "b", "a", NULL }, dir, false), -EBADMSG);
	ck_assert_int_eq(list_changes((const char *[]){ "a/../b", NULL }, 0, false), -EBADMSG);
	ck_assert_int_eq(list_changes((const char *[]){ "/a", NULL }, 0, false), -EBADMSG);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { comes_back_as_it_was,
		is_written_only_when_it_says_something_new, damage_of_any_byte_or_length_is_found,
		a_hostile_list_is_refused, hostile_changes_are_refused };

	return unit_run("manifest", tests, RSB_ARRAY_SIZE(tests));
}
