/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/stat.h>

#include "fuse/names.h"
#include "tests/unit/unit.h"

struct world {
	struct rsb_shared *shared;
	struct rsb_inodes *inodes;
	uint64_t forgot_id;
};

static void
on_forget(void *arg, uint64_t id, uint64_t n)
{
	struct world *w = arg;

	ck_assert_uint_eq(n, 1);
	w->forgot_id = id;
}

static void
world_new(struct world *w)
{
	*w = (struct world){ .forgot_id = 0 };
	ck_assert_int_eq(rsb_shared_new(&w->shared, NULL), 0);
	ck_assert_int_eq(rsb_inodes_new(w->shared, on_forget, w, &w->inodes), 0);
}

static void
world_free(struct world *w)
{
	rsb_inodes_free(w->inodes);
	rsb_shared_free(w->shared);
}

START_TEST(names_are_found_absent_or_unknown)
{
	const struct rsb_attr attr = { .ino = 100, .mode = S_IFREG | 0644, .nlink = 1 };
	struct rsb_inode *got = NULL;
	struct rsb_names *names;
	struct rsb_inode *root;
	struct rsb_inode *a;
	struct world w;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	ck_assert_int_eq(rsb_names_new(100, &names), 0);
	ck_assert_int_eq(rsb_inode_given(w.inodes, 5, &attr, &a), 0);
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("a"), &got), -ENOENT);
	rsb_names_put(names, root, rsb_bytes_str("a"), a);
	rsb_names_put(names, root, rsb_bytes_str("b"), NULL);
	rsb_inode_unref(a);
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("a"), &got), 1);
	ck_assert_ptr_eq(got, a);
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("b"), &got), 0);
	rsb_names_drop(names, root, rsb_bytes_str("b"));
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("b"), &got), -ENOENT);
	rsb_names_clear(names);
	ck_assert_uint_eq(rsb_names_count(names), 0);
	ck_assert_uint_eq(w.forgot_id, 5);
	rsb_names_free(names);
	world_free(&w);
}
END_TEST

START_TEST(the_oldest_name_gives_way)
{
	struct rsb_inode *got;
	struct rsb_names *names;
	struct rsb_inode *root;
	struct world w;
	char name[2] = "a";

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	ck_assert_int_eq(rsb_names_new(3, &names), 0);
	root->listed_gen = 9;
	for (; name[0] <= 'd'; name[0]++)
		rsb_names_put(names, root, rsb_bytes_str(name), NULL);
	ck_assert_uint_eq(rsb_names_count(names), 3);
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("a"), &got), -ENOENT);
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("d"), &got), 0);
	/* The directory is not known as a whole any more. */
	ck_assert_uint_eq(root->listed_gen, 0);
	rsb_names_free(names);
	world_free(&w);
}
END_TEST

START_TEST(lent_names_do_not_give_way)
{
	struct rsb_inode *got;
	struct rsb_names *names;
	struct rsb_inode *root;
	struct world w;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	ck_assert_int_eq(rsb_names_new(2, &names), 0);
	rsb_names_put(names, root, rsb_bytes_str("a"), NULL);
	rsb_names_put(names, root, rsb_bytes_str("b"), NULL);
	ck_assert_int_eq(rsb_names_lend(names, root, rsb_bytes_str("a"), 1), 0);
	rsb_names_put(names, root, rsb_bytes_str("c"), NULL);
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("a"), &got), 0);
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("b"), &got), -ENOENT);
	ck_assert_int_eq(rsb_names_lend(names, root, rsb_bytes_str("c"), 1), 0);
	rsb_names_put(names, root, rsb_bytes_str("d"), NULL);
	ck_assert_int_eq(rsb_names_lend(names, root, rsb_bytes_str("d"), 1), -ENOENT);
	/* The kernel has it no more. */
	rsb_names_take_back(names, root, rsb_bytes_str("a"));
	rsb_names_put(names, root, rsb_bytes_str("d"), NULL);
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("a"), &got), -ENOENT);
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("d"), &got), 0);
	rsb_names_free(names);
	world_free(&w);
}
END_TEST

static void
count_name(void *arg, uint64_t parent_nodeid, struct rsb_bytes name)
{
	size_t *n = arg;

	ck_assert_uint_eq(parent_nodeid, 1);
	ck_assert_uint_eq(name.size, 1);
	(*n)++;
}

START_TEST(lent_names_are_claimed_back_once)
{
	struct rsb_inode *got;
	struct rsb_names *names;
	struct rsb_inode *root;
	struct world w;
	size_t n = 0;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	ck_assert_int_eq(rsb_names_new(100, &names), 0);
	ck_assert_int_eq(rsb_names_lend(names, root, rsb_bytes_str("a"), 5), -ENOENT);
	rsb_names_put(names, root, rsb_bytes_str("a"), NULL);
	ck_assert_int_eq(rsb_names_lend(names, root, rsb_bytes_str("a"), 4), 0);
	ck_assert_int_eq(rsb_names_lend(names, root, rsb_bytes_str("a"), 5), 0);
	/* Dropping it does not take it from the kernel. */
	rsb_names_clear(names);
	ck_assert_int_eq(rsb_names_get(names, root, rsb_bytes_str("a"), &got), -ENOENT);
	ck_assert_uint_eq(rsb_names_count(names), 1);
	/* Given a moment ago: it is told once more. */
	rsb_names_reclaim(names, 4, count_name, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert(rsb_names_is_lent(names, root, rsb_bytes_str("a")));
	rsb_names_reclaim(names, 5, count_name, &n);
	ck_assert_uint_eq(n, 2);
	rsb_names_reclaim(names, 9, count_name, &n);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(rsb_names_count(names), 0);
	rsb_names_free(names);
	world_free(&w);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		names_are_found_absent_or_unknown,
		the_oldest_name_gives_way,
		lent_names_do_not_give_way,
		lent_names_are_claimed_back_once,
	};

	return unit_run("mount-names", tests, RSB_ARRAY_SIZE(tests));
}
