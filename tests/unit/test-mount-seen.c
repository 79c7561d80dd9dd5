/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/stat.h>

#include "tests/unit/nodes.h"

START_TEST(knows_how_deep_a_link_lies)
{
	struct world w;
	struct rsb_inode *root;
	struct rsb_inode *d;
	struct rsb_inode *link;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	d = given(&w, 5, 100);
	link = given(&w, 6, 101);
	ck_assert_int_eq(rsb_seen_depth(link), -ENOENT);
	rsb_seen_hint(d, root, rsb_bytes_str("d"));
	rsb_seen_hint(link, d, rsb_bytes_str("l"));
	ck_assert_int_eq(rsb_seen_depth(d), 0);
	ck_assert_int_eq(rsb_seen_depth(link), 1);
	/* A peer that makes a circle of directories ends in an error, not in a loop. */
	rsb_seen_hint(d, link, rsb_bytes_str("d"));
	ck_assert_int_eq(rsb_seen_depth(link), -ENOENT);
	rsb_inode_unref(link);
	rsb_inode_unref(d);
	world_free(&w);
}
END_TEST

START_TEST(what_has_several_places_counts_as_the_least_deep)
{
	struct world w;
	struct rsb_inode *root;
	struct rsb_inode *d;
	struct rsb_inode *link;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	d = given(&w, 5, 100);
	link = given(&w, 6, 101);
	rsb_seen_hint(d, root, rsb_bytes_str("d"));
	rsb_seen_hint(link, root, rsb_bytes_str("hard"));
	rsb_seen_hint(link, d, rsb_bytes_str("l"));
	/* The kernel may ask by either name. */
	ck_assert_int_eq(rsb_seen_depth(link), 0);
	rsb_inode_unref(link);
	rsb_inode_unref(d);
	world_free(&w);
}
END_TEST

START_TEST(what_lies_in_a_directory_moves_with_it)
{
	struct world w;
	struct rsb_inode *root;
	struct rsb_inode *a;
	struct rsb_inode *b;
	struct rsb_inode *link;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	a = given(&w, 5, 100);
	b = given(&w, 6, 101);
	link = given(&w, 7, 102);
	rsb_seen_hint(a, root, rsb_bytes_str("a"));
	rsb_seen_hint(b, a, rsb_bytes_str("b"));
	rsb_seen_hint(link, b, rsb_bytes_str("l"));
	ck_assert_int_eq(rsb_seen_depth(link), 2);
	rsb_seen_moved_all(w.inodes, a, rsb_bytes_str("b"), root, rsb_bytes_str("c"), true);
	ck_assert_int_eq(rsb_seen_depth(link), 1);
	/* Back again it counts as where it was: that only refuses too much. */
	rsb_seen_hint(b, a, rsb_bytes_str("b"));
	ck_assert_int_eq(rsb_seen_depth(link), 1);
	rsb_inode_unref(link);
	rsb_inode_unref(b);
	rsb_inode_unref(a);
	world_free(&w);
}
END_TEST

START_TEST(a_directory_stays_as_long_as_what_was_seen_in_it)
{
	struct world w;
	struct rsb_inodes *next;
	struct rsb_inode *d;
	struct rsb_inode *e;
	struct rsb_inode *f;
	struct rsb_inode *parent;

	world_new(&w);
	d = given(&w, 5, 100);
	e = given(&w, 6, 101);
	f = given(&w, 7, 102);
	rsb_seen_hint(d, rsb_inode_root(w.inodes), rsb_bytes_str("d"));
	rsb_seen_hint(e, d, rsb_bytes_str("e"));
	rsb_seen_hint(f, e, rsb_bytes_str("f"));
	rsb_inode_looked_up(f);
	rsb_inode_unref(d);
	rsb_inode_unref(e);
	rsb_inode_unref(f);
	ck_assert_str_eq(rsb_seen_last(f, &parent), "f");
	ck_assert_str_eq(rsb_seen_last(parent, &parent), "e");
	ck_assert_str_eq(rsb_seen_last(parent, &parent), "d");
	/* Also for the next process. */
	ck_assert_int_eq(rsb_inodes_new(w.shared, on_forget, &w, &next), 0);
	rsb_inodes_free(w.inodes);
	w.inodes = next;
	rsb_inodes_sweep(next);
	f = rsb_inode_by_id(next, 7);
	ck_assert_str_eq(rsb_seen_last(f, &parent), "f");
	ck_assert_str_eq(rsb_seen_last(parent, &parent), "e");
	/* It moves, and what it was in goes. */
	rsb_seen_hint(f, rsb_inode_root(next), rsb_bytes_str("f"));
	ck_assert_ptr_null(rsb_inode_by_id(next, 5));
	ck_assert_ptr_null(rsb_inode_by_id(next, 6));
	rsb_inode_forget(f, 1);
	ck_assert_uint_eq(rsb_inodes_count(next), 1);
	world_free(&w);
}
END_TEST

START_TEST(a_directory_that_was_moved_is_another_node)
{
	struct world w;
	struct rsb_inodes *next;
	struct rsb_inode *root;
	struct rsb_inode *d;
	struct rsb_inode *old;
	struct rsb_inode *parent;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	d = given_dir(&w, 5);
	old = given_dir(&w, 6);
	rsb_seen_hint(d, root, rsb_bytes_str("d"));
	rsb_seen_hint(old, d, rsb_bytes_str("name"));
	/* Not yet given to the kernel; then where it was; then moved by a program here. */
	ck_assert_int_eq(rsb_seen_settle(&old, root, rsb_bytes_str("name")), 0);
	ck_assert_uint_eq(rsb_inodes_count(w.inodes), 3);
	rsb_inode_looked_up(old);
	ck_assert_int_eq(rsb_seen_settle(&old, d, rsb_bytes_str("name")), 0);
	rsb_seen_moved(old, d, rsb_bytes_str("name"), d, rsb_bytes_str("new"));
	ck_assert_int_eq(rsb_seen_settle(&old, d, rsb_bytes_str("new")), 0);
	ck_assert_int_eq(rsb_inode_check(old), 0);
	parent = old;
	ck_assert_int_eq(rsb_seen_settle(&parent, root, rsb_bytes_str("new")), 0);
	ck_assert_ptr_ne(parent, old);
	ck_assert_uint_ne(parent->nodeid, old->nodeid);
	ck_assert_int_eq(rsb_inode_check(old), -ESTALE);
	ck_assert_int_eq(rsb_inode_check(parent), 0);
	ck_assert_ptr_eq(rsb_inode_by_id(w.inodes, 6), parent);
	/* Also for the next process. */
	rsb_inode_looked_up(parent);
	ck_assert_int_eq(rsb_inodes_new(w.shared, on_forget, &w, &next), 0);
	ck_assert_int_eq(rsb_inode_check(rsb_inode_by_nodeid(next, old->nodeid)), -ESTALE);
	ck_assert_uint_eq(rsb_inode_by_id(next, 6)->nodeid, parent->nodeid);
	rsb_inodes_free(next);
	/* What the sidecar gave is returned by the one that goes on, once. */
	rsb_inode_forget(old, 1);
	ck_assert_uint_eq(w.forgot_n, 0);
	rsb_inode_unref(parent);
	rsb_inode_forget(parent, 1);
	ck_assert_uint_eq(w.forgot_id, 6);
	ck_assert_uint_eq(w.forgot_n, 1);
	rsb_inode_unref(d);
	world_free(&w);
}
END_TEST

/* The process that sees it move knows of it only which directory it is. */
START_TEST(a_directory_that_moves_after_a_crash_is_still_that_one)
{
	const struct rsb_attr attr = {
		.ino = 106, .mode = S_IFDIR | 0755, .nlink = 2, .btime = { .sec = 1, .nsec = 2 }
	};
	struct world w;
	struct rsb_inodes *killed;
	struct rsb_inode *old, *new, *same;

	world_new(&w);
	killed = w.inodes;
	ck_assert_int_eq(rsb_inode_given(killed, 6, &attr, &old), 0);
	rsb_seen_hint(old, rsb_inode_root(killed), rsb_bytes_str("name"));
	rsb_inode_looked_up(old);
	ck_assert_int_eq(rsb_inodes_new(w.shared, on_forget, &w, &w.inodes), 0);
	new = rsb_inode_ref(rsb_inode_by_id(w.inodes, 6));
	ck_assert_int_eq(rsb_seen_settle(&new, rsb_inode_root(w.inodes), rsb_bytes_str("new")), 0);
	ck_assert_uint_ne(new->nodeid, old->nodeid);
	ck_assert_int_eq(rsb_inode_given(w.inodes, 6, &attr, &same), 0);
	ck_assert_ptr_eq(same, new);
	rsb_inode_unref(same);
	rsb_inode_unref(new);
	rsb_inodes_free(killed);
	world_free(&w);
}
END_TEST

START_TEST(knows_where_no_directory_was)
{
	struct world w;
	struct rsb_inode *root, *dir, *deep, *file, *new;
	struct rsb_inodes *killed;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	dir = given_dir(&w, 5);
	deep = given_dir(&w, 6);
	file = given(&w, 7, 102);
	rsb_seen_hint(file, root, rsb_bytes_str("file"));
	rsb_seen_hint(dir, root, rsb_bytes_str("dir"));
	rsb_seen_hint(deep, dir, rsb_bytes_str("deep"));
	ck_assert(!rsb_seen_has_dir(root, rsb_bytes_str("file")));
	ck_assert(rsb_seen_has_dir(root, rsb_bytes_str("dir")));
	ck_assert(rsb_seen_has_dir(dir, rsb_bytes_str("deep")));
	/* Moved away, it may have come back. */
	rsb_seen_moved(deep, dir, rsb_bytes_str("deep"), root, rsb_bytes_str("x"));
	ck_assert(rsb_seen_has_dir(dir, rsb_bytes_str("deep")));
	ck_assert(rsb_seen_has_dir(root, rsb_bytes_str("x")));
	/* Moved by the sandbox it is another node, and has what it had. */
	new = rsb_inode_ref(dir);
	ck_assert_int_eq(rsb_inode_replace(&new), 0);
	ck_assert(rsb_seen_has_dir(new, rsb_bytes_str("deep")));
	rsb_inode_looked_up(new);
	rsb_seen_hint(new, root, rsb_bytes_str("dir"));
	/* What the process of before saw nobody knows. */
	killed = w.inodes;
	ck_assert_int_eq(rsb_inodes_new(w.shared, on_forget, &w, &w.inodes), 0);
	ck_assert(rsb_seen_has_dir(rsb_inode_root(w.inodes), rsb_bytes_str("dir")));
	ck_assert(rsb_seen_has_dir(rsb_inode_by_id(w.inodes, 5), rsb_bytes_str("deep")));
	rsb_inodes_free(killed);
	world_free(&w);
}
END_TEST

START_TEST(hints_that_make_a_circle_keep_nothing)
{
	struct world w;
	struct rsb_inode *dirs[4];

	world_new(&w);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(dirs); i++)
		dirs[i] = given(&w, 5 + i, 100 + i);
	for (size_t i = 0; i < 3 * RSB_ARRAY_SIZE(dirs); i++)
		rsb_seen_hint(dirs[i % 4], dirs[(i + 1 + i / 4) % 4], rsb_bytes_str("name"));
	for (size_t i = 0; i < RSB_ARRAY_SIZE(dirs); i++)
		rsb_inode_unref(dirs[i]);
	ck_assert_uint_eq(rsb_inodes_count(w.inodes), 1);
	world_free(&w);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		knows_how_deep_a_link_lies,
		what_has_several_places_counts_as_the_least_deep,
		what_lies_in_a_directory_moves_with_it,
		a_directory_stays_as_long_as_what_was_seen_in_it,
		a_directory_that_was_moved_is_another_node,
		a_directory_that_moves_after_a_crash_is_still_that_one,
		knows_where_no_directory_was,
		hints_that_make_a_circle_keep_nothing,
	};

	return unit_run("mount-seen", tests, RSB_ARRAY_SIZE(tests));
}
