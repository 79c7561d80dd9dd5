/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <time.h>

#include "fuse/gitway.h"
#include "tests/unit/gitworld.h"

/* The kernel is told of it, too. */
static struct rsb_inode *
given(struct world *w, mode_t type, struct rsb_inode *dir, const char *name)
{
	struct rsb_inode *inode = seen(w, type, dir, name);

	rsb_gitplace_given(inode, dir ? dir : rsb_inode_root(w->inodes), rsb_bytes_str(name));
	return inode;
}

/* What is of its config and of a hook in it. */
static void
check_files(struct world *w, struct rsb_inode *dir, bool is_repository)
{
	struct rsb_inode *hooks = given(w, S_IFDIR, dir, "hooks");

	ck_assert_int_eq(kind(given(w, S_IFREG, dir, "config"), NULL),
		is_repository ? RSB_GIT_CONFIG : RSB_GIT_NONE);
	ck_assert_int_eq(kind(given(w, S_IFREG, hooks, "post-checkout"), NULL),
		is_repository ? RSB_GIT_HOOK : RSB_GIT_NONE);
}

START_TEST(what_is_swapped_for_a_repository_is_one)
{
	struct world w;
	struct rsb_inode *far, *odd;

	world_new(&w);
	far = given(&w, S_IFDIR, NULL, "far");
	odd = given(&w, S_IFDIR, far, "odd");
	(void)given(&w, S_IFDIR, odd, "objects");
	check_files(&w, given(&w, S_IFDIR, far, "odd"), false);
	/* Git saw one half in one and the other in another. */
	(void)given(&w, S_IFDIR, given(&w, S_IFDIR, far, "odd"), "refs");
	check_files(&w, given(&w, S_IFDIR, far, "odd"), true);
	check_files(&w, given(&w, S_IFDIR, given(&w, S_IFDIR, NULL, "far"), "odd"), true);
	check_files(&w, given(&w, S_IFDIR, far, "even"), false);
	check_files(&w, given(&w, S_IFDIR, odd, "odd"), false);
	check_files(&w, given(&w, S_IFDIR, NULL, "odd"), false);
	check_files(&w, far, false);
	/* And for the directory of a worktree. */
	(void)given(&w, S_IFREG, given(&w, S_IFDIR, far, "w"), "commondir");
	check_files(&w, given(&w, S_IFDIR, far, "w"), true);
	/* A crash forgets the directories of before, and not what they were. */
	rsb_inodes_free(w.inodes);
	ck_assert_int_eq(rsb_inodes_new(w.shared, on_forget, &w, &w.inodes), 0);
	far = given(&w, S_IFDIR, NULL, "far");
	check_files(&w, given(&w, S_IFDIR, far, "odd"), true);
	check_files(&w, given(&w, S_IFDIR, far, "even"), false);
	world_free(&w);
}
END_TEST

START_TEST(a_repository_that_is_renamed_here_is_one_there)
{
	struct world w;
	struct rsb_inode *root, *far, *odd;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	far = given(&w, S_IFDIR, NULL, "far");
	odd = given(&w, S_IFDIR, far, "odd");
	(void)given(&w, S_IFDIR, odd, "objects");
	(void)given(&w, S_IFDIR, odd, "refs");
	rsb_seen_moved(far, root, rsb_bytes_str("far"), root, rsb_bytes_str("near"));
	check_files(&w, given(&w, S_IFDIR, given(&w, S_IFDIR, NULL, "near"), "odd"), false);
	rsb_gitplace_renamed(w.inodes);
	check_files(&w, given(&w, S_IFDIR, given(&w, S_IFDIR, NULL, "near"), "odd"), true);
	/* The sandbox moves it: the kernel may know what is in it, and not ask for that again. */
	rsb_seen_hint(odd, root, rsb_bytes_str("even"));
	rsb_gitplace_given(odd, root, rsb_bytes_str("even"));
	check_files(&w, given(&w, S_IFDIR, NULL, "even"), true);
	world_free(&w);
}
END_TEST

START_TEST(where_nobody_knows_is_anywhere)
{
	struct world w;
	struct rsb_inode *dir;

	world_new(&w);
	dir = given(&w, S_IFDIR, NULL, "dir");
	check_files(&w, dir, false);
	rsb_gitplace_lose(dir);
	check_files(&w, dir, true);
	/* Each in the other. */
	dir = given(&w, S_IFDIR, NULL, "a");
	rsb_seen_hint(dir, given(&w, S_IFDIR, dir, "b"), rsb_bytes_str("a"));
	check_files(&w, dir, true);
	world_free(&w);
}
END_TEST

START_TEST(what_something_leads_to_is_a_repository)
{
	struct world w;
	struct rsb_inode *link, *far, *r;

	world_new(&w);
	r = given(&w, S_IFDIR, NULL, "r");
	far = given(&w, S_IFDIR, NULL, "far");
	link = given(&w, S_IFLNK, NULL, "l");
	rsb_gitway_lead(r, "/m", rsb_bytes_str("../far/./odd"));
	check_files(&w, given(&w, S_IFDIR, far, "odd"), true);
	check_files(&w, far, false);
	rsb_gitway_lead(r, "/m", rsb_bytes_str("/m/far/x/../even"));
	check_files(&w, given(&w, S_IFDIR, far, "even"), true);
	rsb_gitway_lead(r, "/m", rsb_bytes_str("/elsewhere/far/other"));
	check_files(&w, given(&w, S_IFDIR, far, "other"), false);
	rsb_gitway_lead(given(&w, S_IFDIR, far, "a"), "/m", rsb_bytes_str("."));
	check_files(&w, given(&w, S_IFDIR, far, "a"), true);
	/* No link may be on the way, whether it was known before. */
	ck_assert(!rsb_gitplace_is_link(link));
	rsb_gitway_lead(r, "/m", rsb_bytes_str("../l/odd"));
	ck_assert(rsb_gitplace_is_link(link));
	link = given(&w, S_IFLNK, NULL, "l");
	rsb_seen_hint(link, far, rsb_bytes_str("innocent"));
	ck_assert(rsb_gitplace_is_link(link));
	ck_assert(rsb_gitplace_is_link(given(&w, S_IFLNK, far, "odd")));
	ck_assert(!rsb_gitplace_is_link(given(&w, S_IFLNK, far, "other")));
	ck_assert_int_eq(kind(given(&w, S_IFREG, far, "odd"), NULL), RSB_GIT_AWAY);
	ck_assert_int_eq(kind(given(&w, S_IFREG, NULL, "l"), NULL), RSB_GIT_NONE);
	world_free(&w);
}
END_TEST

START_TEST(a_link_called_git_leads_to_a_repository)
{
	struct world w;
	struct rsb_inode *link, *far, *r, *modules;

	world_new(&w);
	r = given(&w, S_IFDIR, NULL, "r");
	far = given(&w, S_IFDIR, NULL, "far");
	link = given(&w, S_IFLNK, r, ".git");
	ck_assert(!rsb_gitplace_is_link(link));
	rsb_gitplace_follow(link, "/m", rsb_bytes_str("../far/odd"));
	check_files(&w, given(&w, S_IFDIR, far, "odd"), true);
	rsb_gitplace_follow(given(&w, S_IFLNK, r, "git"), "/m", rsb_bytes_str("../far/even"));
	check_files(&w, given(&w, S_IFDIR, far, "even"), false);
	/* Called otherwise now, it may be followed as what it was. */
	rsb_seen_hint(link, r, rsb_bytes_str("innocent"));
	ck_assert(rsb_gitplace_is_link(link));
	/* Submodules have names like paths. */
	modules = given(&w, S_IFDIR, given(&w, S_IFDIR, far, ".git"), "modules");
	ck_assert(rsb_gitplace_is_link(given(&w, S_IFLNK, modules, "a")));
	ck_assert(rsb_gitplace_is_link(given(&w, S_IFLNK, given(&w, S_IFDIR, modules, "b"), "c")));
	r = given(&w, S_IFDIR, modules, "r");
	rsb_gitway_lead(r, "/m", rsb_bytes_str("."));
	ck_assert(!rsb_gitplace_is_link(given(&w, S_IFLNK, r, "HEAD")));
	world_free(&w);
}
END_TEST

/* Which bits stand for it the sandbox could choose so that all else stands there too. */
START_TEST(what_something_leads_to_is_kept_from_git_whatever_else_is_noted)
{
	struct world w;
	struct rsb_inode *root;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	rsb_gitway_lead(root, "/m", rsb_bytes_str("odd"));
	memset(w.shared->git_marks, 0xff, sizeof(w.shared->git_marks));
	ck_assert_int_eq(kind(given(&w, S_IFREG, NULL, "odd"), NULL), RSB_GIT_AWAY);
	world_free(&w);
}
END_TEST

START_TEST(nobody_can_work_out_which_bits_stand_for_a_place)
{
	struct world w[2];

	for (size_t i = 0; i < RSB_ARRAY_SIZE(w); i++) {
		world_new(&w[i]);
		rsb_gitway_lead(rsb_inode_root(w[i].inodes), "/m", rsb_bytes_str("odd"));
	}
	ck_assert_mem_ne(
		w[0].shared->git_marks, w[1].shared->git_marks, sizeof(w[0].shared->git_marks));
	for (size_t i = 0; i < RSB_ARRAY_SIZE(w); i++)
		world_free(&w[i]);
}
END_TEST

static int64_t
cpu_ns(void)
{
	struct timespec now;

	ck_assert_int_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* What a way of n directories costs, and a link at its end. */
static int64_t
cost_of(struct rsb_inode *root, const struct rsb_inode *link, size_t n)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf way = { 0 };
	const int64_t began = cpu_ns();

	for (size_t i = 0; i < n; i++)
		ck_assert_int_ge(rsb_buf_printf(&way, "a/"), 0);
	for (size_t i = 0; i < 50; i++) {
		rsb_gitway_lead(root, "/m", rsb_buf_view(&way));
		ck_assert(!rsb_gitplace_is_link(link));
	}
	return cpu_ns() - began;
}

/* Not the square of it, which would be a hundred times as much here. */
START_TEST(a_long_way_costs_what_it_is_long)
{
	struct rsb_inode *links[2], *dir = NULL;
	const size_t depths[] = { 200, 2000 };
	struct world w;

	world_new(&w);
	for (size_t i = 0, depth = 0; i < RSB_ARRAY_SIZE(depths); i++) {
		for (; depth < depths[i]; depth++)
			dir = given(&w, S_IFDIR, dir, "b");
		links[i] = given(&w, S_IFLNK, dir, "l");
	}
	ck_assert_int_lt(cost_of(rsb_inode_root(w.inodes), links[1], depths[1]),
		40 * cost_of(rsb_inode_root(w.inodes), links[0], depths[0]));
	world_free(&w);
}
END_TEST

START_TEST(a_link_far_below_directories_called_modules)
{
	struct rsb_inode *dir = NULL, *plain = NULL;
	struct world w;

	world_new(&w);
	for (size_t i = 0; i < 100; i++) {
		dir = given(&w, S_IFDIR, dir, "modules");
		plain = given(&w, S_IFDIR, plain, "plain");
	}
	ck_assert(rsb_gitplace_is_link(given(&w, S_IFLNK, dir, "l")));
	ck_assert(!rsb_gitplace_is_link(given(&w, S_IFLNK, plain, "l")));
	/* Not far below no repository. */
	dir = given(&w, S_IFDIR, NULL, "modules");
	ck_assert(!rsb_gitplace_is_link(given(&w, S_IFLNK, dir, "l")));
	world_free(&w);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		what_is_swapped_for_a_repository_is_one,
		a_repository_that_is_renamed_here_is_one_there,
		where_nobody_knows_is_anywhere,
		what_something_leads_to_is_a_repository,
		a_link_called_git_leads_to_a_repository,
		what_something_leads_to_is_kept_from_git_whatever_else_is_noted,
		nobody_can_work_out_which_bits_stand_for_a_place,
		a_long_way_costs_what_it_is_long,
		a_link_far_below_directories_called_modules,
	};

	return unit_run("mount-gitmarks", tests, RSB_ARRAY_SIZE(tests));
}
