/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "keeper/gitout.h"
#include "keeper/syncplan.h"
#include "tests/unit/unit.h"

#define FILE_MODE (S_IFREG | 0644)

static void
add(struct rsb_tree *tree, const char *path, uint32_t mode, char what)
{
	struct rsb_tree_leaf leaf = { .path = (char *)path, .mode = mode, .hashed = S_ISREG(mode) };
	char target[] = { what, '\0' };

	leaf.target = S_ISLNK(mode) ? target : NULL;
	leaf.sha[0] = (uint8_t)what;
	ck_assert_int_eq(rsb_tree_add(tree, &leaf), 0);
}

/* A side is '-' (not there), or what a file, 'd' directory, or 'l' link holds. */
static uint32_t
mode_of(char side)
{
	return side == 'd' ? S_IFDIR | 0755 : side == 'l' ? S_IFLNK | 0777 : FILE_MODE;
}

START_TEST(each_of_three_sides)
{
	static const struct {
		const char *sides; /* here, base, there */
		enum rsb_merge_act act;
	} cases[] = {
		{ "aaa", RSB_MERGE_NOTHING },
		{ "aab", RSB_MERGE_TAKE },
		{ "aa-", RSB_MERGE_DROP },
		{ "baa", RSB_MERGE_GIVE },
		{ "bab", RSB_MERGE_NOTHING },
		{ "bac", RSB_MERGE_CONFLICT },
		{ "ba-", RSB_MERGE_CONFLICT },
		{ "-aa", RSB_MERGE_REMOVE },
		{ "-ab", RSB_MERGE_CONFLICT },
		{ "-a-", RSB_MERGE_NOTHING },
		{ "a--", RSB_MERGE_GIVE },
		{ "--a", RSB_MERGE_TAKE },
		{ "a-a", RSB_MERGE_NOTHING },
		{ "a-b", RSB_MERGE_CONFLICT },
		/* Of other kinds. */
		{ "ddd", RSB_MERGE_NOTHING },
		{ "dd-", RSB_MERGE_DROP },
		{ "d-d", RSB_MERGE_NOTHING },
		{ "--d", RSB_MERGE_TAKE },
		{ "aad", RSB_MERGE_TAKE },
		{ "dda", RSB_MERGE_TAKE },
		{ "bad", RSB_MERGE_CONFLICT },
		{ "ddl", RSB_MERGE_TAKE },
		{ "lla", RSB_MERGE_TAKE },
		{ "lal", RSB_MERGE_NOTHING },
		{ "dla", RSB_MERGE_CONFLICT },
		{ "ll-", RSB_MERGE_DROP },
		{ "d-a", RSB_MERGE_CONFLICT },
		{ "-ad", RSB_MERGE_TAKE },
		{ "da-", RSB_MERGE_GIVE },
		{ "-d-", RSB_MERGE_NOTHING },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		RSB_CLEANUP(rsb_syncplan_done) struct rsb_syncplan plan = { .root_fd = -1 };
		struct rsb_tree *trees[] = { &plan.here, &plan.base, &plan.there };
		struct rsb_diag diag = { 0 };

		for (size_t side = 0; side < 3; side++)
			if (cases[i].sides[side] != '-')
				add(trees[side], "x", mode_of(cases[i].sides[side]),
					cases[i].sides[side]);
		ck_assert_int_eq(rsb_syncplan_make(&plan, &diag), 0);
		ck_assert_uint_eq(plan.n, 1);
		ck_assert_msg(plan.jobs[0].act == cases[i].act, "%s: %d", cases[i].sides,
			(int)plan.jobs[0].act);
	}
}
END_TEST

static const char *const paths[] = { "d", "d/a", "d/b" };

/* sides: of the paths, in the base and on the side that has the directory; '-': it is not there. */
static void
make_clash(struct rsb_syncplan *plan, struct rsb_tree *side, const char *sides, bool open)
{
	struct rsb_diag diag = { 0 };

	for (size_t k = 0; k < RSB_ARRAY_SIZE(paths); k++) {
		const char was = sides[k];
		const char is = sides[RSB_ARRAY_SIZE(paths) + k];

		if (was != '-')
			add(&plan->base, paths[k], mode_of(was), was);
		if (is != '-')
			add(side, paths[k], mode_of(is), is);
	}
	plan->base.leaves[0].conflict = open;
	ck_assert_int_eq(rsb_syncplan_make(plan, &diag), 0);
}

/* Acts of what is in a directory there, where a file is here. */
START_TEST(a_directory_beside_a_file)
{
	static const struct {
		bool open;         /* since an earlier sync */
		const char *sides; /* of d, d/a and d/b: base, there */
		enum rsb_merge_act acts[3];
	} cases[] = {
		{ false, "a--dab", { RSB_MERGE_CONFLICT, RSB_MERGE_TAKE, RSB_MERGE_TAKE } },
		{ true, "dabdab", { RSB_MERGE_GIVE, RSB_MERGE_NOTHING, RSB_MERGE_NOTHING } },
		{ true, "dabdac", { RSB_MERGE_CONFLICT, RSB_MERGE_TAKE, RSB_MERGE_TAKE } },
		{ true, "dabda-", { RSB_MERGE_CONFLICT, RSB_MERGE_TAKE, RSB_MERGE_NOTHING } },
		{ false, "dabdac", { RSB_MERGE_CONFLICT, RSB_MERGE_TAKE, RSB_MERGE_TAKE } },
		{ false, "dabdab", { RSB_MERGE_GIVE, RSB_MERGE_REMOVE, RSB_MERGE_REMOVE } },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		RSB_CLEANUP(rsb_syncplan_done) struct rsb_syncplan plan = { .root_fd = -1 };

		add(&plan.here, "d", FILE_MODE, 'z');
		make_clash(&plan, &plan.there, cases[i].sides, cases[i].open);
		ck_assert_uint_eq(plan.n, 3);
		for (size_t k = 0; k < 3; k++) {
			ck_assert_msg(plan.jobs[k].act == cases[i].acts[k], "%zu %s: %d", i,
				paths[k], (int)plan.jobs[k].act);
			ck_assert_uint_eq(plan.jobs[k].beside, i < 5);
		}
	}
}
END_TEST

/* The same the other way round: what is in it stays here as it is. */
START_TEST(a_directory_here_and_a_file)
{
	static const struct {
		bool open;
		const char *sides; /* of d, d/a and d/b: base, here */
		enum rsb_merge_act acts[3];
	} cases[] = {
		{ false, "dabdab", { RSB_MERGE_TAKE, RSB_MERGE_DROP, RSB_MERGE_DROP } },
		{ false, "dabda-", { RSB_MERGE_TAKE, RSB_MERGE_DROP, RSB_MERGE_NOTHING } },
		{ false, "dabdac", { RSB_MERGE_CONFLICT, RSB_MERGE_NOTHING, RSB_MERGE_NOTHING } },
		{ false, "da-dac", { RSB_MERGE_CONFLICT, RSB_MERGE_NOTHING, RSB_MERGE_NOTHING } },
		{ false, "a--dab", { RSB_MERGE_CONFLICT, RSB_MERGE_NOTHING, RSB_MERGE_NOTHING } },
		{ true, "z--dab", { RSB_MERGE_GIVE, RSB_MERGE_NOTHING, RSB_MERGE_NOTHING } },
		{ false, "z--dab", { RSB_MERGE_GIVE, RSB_MERGE_GIVE, RSB_MERGE_GIVE } },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		RSB_CLEANUP(rsb_syncplan_done) struct rsb_syncplan plan = { .root_fd = -1 };

		add(&plan.there, "d", FILE_MODE, 'z');
		make_clash(&plan, &plan.here, cases[i].sides, cases[i].open);
		for (size_t k = 0; k < plan.n; k++)
			ck_assert_msg(plan.jobs[k].act == cases[i].acts[k], "%zu %s: %d", i,
				paths[k], (int)plan.jobs[k].act);
	}
}
END_TEST

START_TEST(our_own_directory_is_refused)
{
	RSB_CLEANUP(rsb_syncplan_done) struct rsb_syncplan plan = { .root_fd = -1 };
	struct rsb_diag diag = { 0 };

	add(&plan.there, ".RSB", S_IFDIR | 0755, 'd');
	ck_assert_int_eq(rsb_syncplan_make(&plan, &diag), -EBADMSG);
}
END_TEST

START_TEST(links_that_lead_out)
{
	static const struct {
		const char *path, *target;
		bool out;
	} cases[] = {
		{ "a", "b", false },
		{ "a", "/b", true },
		{ "a", "..", true },
		{ "d/a", "..", false },
		{ "d/a", "../..", true },
		{ "d/a", "../b/./c", false },
		{ "d/a", "b/..", true },
		{ "d/e/a", "../../x", false },
		{ "a", "./../b", true },
		{ "d/a", "..//../b", true },
		{ "a", "...", false },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++)
		ck_assert_msg(
			rsb_syncplan_leads_out(cases[i].path, cases[i].target) == cases[i].out,
			"%s -> %s", cases[i].path, cases[i].target);
}
END_TEST

START_TEST(what_gives_git_orders)
{
	static const struct {
		const char *path;
		uint32_t mode;
		bool held;
	} cases[] = {
		{ ".git", S_IFDIR, false },
		{ ".git", S_IFREG, true },
		{ ".git", S_IFLNK, true },
		{ ".git/HEAD", S_IFREG, false },
		{ ".git/HEAD", S_IFLNK, true },
		{ ".git/config", S_IFREG, true },
		{ "sub/.Git/CONFIG.worktree", S_IFREG, true },
		{ ".git/hooks", S_IFDIR, true },
		{ ".git/hooks/x", S_IFREG, true },
		{ ".git/info/attributes", S_IFREG, true },
		{ ".git/info/exclude", S_IFREG, false },
		{ ".git/objects/info/alternates", S_IFREG, true },
		{ ".git/objects/info/http-alternates", S_IFREG, true },
		{ ".git/worktrees/w/gitdir", S_IFREG, true },
		{ ".git/refs/heads/config", S_IFREG, false },
		{ ".git/logs/refs/heads/hooks/a", S_IFREG, false },
		{ ".git/refs/x/r", S_IFDIR, false },
		{ ".git/refs/x/r/HEAD", S_IFREG, true },
		{ ".git/refs/x/r/refs", S_IFDIR, true },
		{ ".git/refs/x/r/config", S_IFREG, false },
		{ ".git/refs/x/old/config", S_IFREG, true },
		{ ".git/logs/HEAD", S_IFREG, false },
		{ ".git/modules/refs/x/config", S_IFREG, true },
		{ ".git/worktrees/w/gitdir", S_IFREG, true },
		{ ".gitmodules", S_IFREG, false },
		{ "hooks/config", S_IFREG, false },
		{ "old/config", S_IFREG, true },
		{ "old/refs/heads/config", S_IFREG, false },
		{ "new/refs", S_IFDIR, true },
		{ "new/config", S_IFREG, false },
	};
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree here = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree there = { 0 };
	static const char *const repository[] = { ".git", ".git/refs", ".git/refs/x",
		".git/refs/x/old", ".git/refs/x/old/HEAD", ".git/refs/x/old/objects",
		".git/refs/x/old/refs", "old", "old/HEAD", "old/objects", "old/refs" };
	static const char *const comes[] = { ".git", ".git/refs", ".git/refs/x", ".git/refs/x/r",
		".git/refs/x/r/HEAD", ".git/refs/x/r/objects", ".git/refs/x/r/refs" };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(repository); i++)
		add(&here, repository[i], S_IFDIR, 'd');
	for (size_t i = 0; i < RSB_ARRAY_SIZE(comes); i++)
		add(&there, comes[i], S_IFDIR, 'd');
	add(&there, "new", S_IFDIR, 'd');
	add(&there, "new/HEAD", S_IFREG, 'a');
	add(&there, "new/objects", S_IFDIR, 'd');
	add(&there, "new/refs", S_IFDIR, 'd');
	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		const struct rsb_tree_leaf leaf = { .path = (char *)cases[i].path,
			.mode = cases[i].mode };

		ck_assert_msg((rsb_gitout_held(&leaf, &here, &there) != NULL) == cases[i].held,
			"%s", cases[i].path);
	}
}
END_TEST

START_TEST(samples_of_hooks_are_none)
{
	static const struct {
		const char *path;
		uint32_t mode;
		bool held;
	} cases[] = {
		{ ".git/hooks/x.sample", S_IFREG, false },
		{ ".git/hooks/x.sample", S_IFLNK, true },
		{ ".git/hooks/x.sample/x", S_IFREG, true },
		{ ".git/hooks/hooks/x.sample", S_IFREG, true },
		{ ".git/hooks/x.Sample", S_IFREG, true },
	};
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree none = { 0 };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		const struct rsb_tree_leaf leaf = { .path = (char *)cases[i].path,
			.mode = cases[i].mode };

		ck_assert_msg((rsb_gitout_held(&leaf, &none, &none) != NULL) == cases[i].held, "%s",
			cases[i].path);
	}
}
END_TEST

START_TEST(parts_of_a_repository)
{
	static const struct {
		const char *path;
		int root; /* -1: in none */
		enum rsb_gitout_part part;
	} cases[] = {
		{ "src/main.c", -1, RSB_GITOUT_OTHER },
		{ ".git", -1, RSB_GITOUT_OTHER },
		{ ".git/HEAD", 4, RSB_GITOUT_OTHER },
		{ ".Git/objects/0A/ff", 4, RSB_GITOUT_OBJECT },
		{ ".git/objects/0a", 4, RSB_GITOUT_OBJECT },
		{ ".git/objects", 4, RSB_GITOUT_OBJECT },
		{ ".git/objects/pack/x.pack", 4, RSB_GITOUT_OBJECT },
		{ ".git/objects/x/y", 4, RSB_GITOUT_OTHER },
		{ ".git/refs/heads/objects/aa", 4, RSB_GITOUT_OTHER },
		{ ".git/modules/m/objects/aa/b", 4, RSB_GITOUT_OBJECT },
		{ ".git/FETCH_HEAD", 4, RSB_GITOUT_SCRATCH },
		{ ".git/refs/heads/FETCH_HEAD", 4, RSB_GITOUT_OTHER },
		{ "sub/.git/COMMIT_EDITMSG", 8, RSB_GITOUT_SCRATCH },
		{ "bare/objects/aa/b", 4, RSB_GITOUT_OBJECT },
		{ "bare/refs/heads/x", 4, RSB_GITOUT_OTHER },
		{ "half/objects/aa/b", -1, RSB_GITOUT_OTHER },
		{ "objects/aa/b", -1, RSB_GITOUT_OTHER },
	};
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree here = { 0 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree there = { 0 };
	static const char *const bare[] = { "bare", "bare/HEAD", "bare/objects", "bare/refs" };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(bare); i++)
		add(&there, bare[i], S_IFDIR, 'd');
	add(&here, "half", S_IFDIR, 'd');
	add(&here, "half/HEAD", S_IFREG, 'a');
	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		struct rsb_gitout_place place = { .root = 0 };
		const bool in = rsb_gitout_find(cases[i].path, &here, &there, &place);

		ck_assert_msg(in == (cases[i].root >= 0), "%s", cases[i].path);
		if (in)
			ck_assert_msg(
				(int)place.root == cases[i].root && place.part == cases[i].part,
				"%s: %zu %d", cases[i].path, place.root, (int)place.part);
	}
}
END_TEST

START_TEST(settings_by_their_names)
{
	static const struct {
		const char *path;
		bool is;
	} cases[] = {
		{ ".git/config", true },
		{ "sub/.git/config.worktree", true },
		{ ".git/modules/m/config", true },
		{ ".GIT/config", false },
		{ ".git/CONFIG", false },
		{ ".git/config.lock", false },
		{ ".git/hooks/config", false },
		{ ".git/refs/heads/config", false },
		{ "config", false },
		{ "bare/config", false },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++)
		ck_assert_msg(
			rsb_gitout_is_settings(cases[i].path) == cases[i].is, "%s", cases[i].path);
}
END_TEST

START_TEST(a_repository_is_one_but_for_its_objects)
{
	static const struct {
		const char *path;
		const char *sides; /* here, base, there */
		enum rsb_merge_act act;
		bool kept;
		bool stays;
	} cases[] = {
		{ ".git", "ddd", RSB_MERGE_NOTHING, false, true },
		{ ".git/COMMIT_EDITMSG", "bac", RSB_MERGE_NOTHING, false, true },
		{ ".git/HEAD", "aab", RSB_MERGE_TAKE, false, true },
		{ ".git/objects", "ddd", RSB_MERGE_NOTHING, false, true },
		{ ".git/objects/aa", "dd-", RSB_MERGE_NOTHING, true, false },
		{ ".git/objects/aa/changed", "aab", RSB_MERGE_NOTHING, true, false },
		{ ".git/objects/aa/deleted", "aa-", RSB_MERGE_NOTHING, true, false },
		{ ".git/objects/ab/deleted", "-aa", RSB_MERGE_NOTHING, true, false },
		{ ".git/objects/ab/needed", "-ab", RSB_MERGE_TAKE, false, false },
		{ ".git/objects/ab/new", "--a", RSB_MERGE_TAKE, false, false },
		{ ".git/objects/ab/ours", "a--", RSB_MERGE_GIVE, false, false },
		{ ".git/objects/ab/twice", "a-b", RSB_MERGE_NOTHING, true, false },
		{ ".git/refs", "ddd", RSB_MERGE_NOTHING, false, true },
		{ ".git/refs/main", "bac", RSB_MERGE_CONFLICT, false, true },
		{ "b", "bac", RSB_MERGE_CONFLICT, false, false },
	};
	RSB_CLEANUP(rsb_syncplan_done) struct rsb_syncplan plan = { .root_fd = -1 };
	RSB_CLEANUP(rsb_tree_done) struct rsb_tree staged = { 0 };
	struct rsb_tree *trees[] = { &plan.here, &plan.base, &plan.there };
	char path[RSB_SYNCPLAN_PATH_SIZE];
	struct rsb_diag diag = { 0 };
	size_t drop;
	size_t all;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++)
		for (size_t side = 0; side < 3; side++)
			if (cases[i].sides[side] != '-')
				add(trees[side], cases[i].path, mode_of(cases[i].sides[side]),
					cases[i].sides[side]);
	ck_assert_int_eq(rsb_syncplan_make(&plan, &diag), 0);
	rsb_syncplan_settle(&plan, &staged);
	ck_assert_uint_eq(plan.n, RSB_ARRAY_SIZE(cases));
	for (size_t i = 0; i < plan.n; i++) {
		const struct rsb_syncplan_job *job = &plan.jobs[i];

		ck_assert_msg(job->act == cases[i].act && job->kept == cases[i].kept &&
				      rsb_syncplan_stays(job) == cases[i].stays,
			"%s: %d %d %d", cases[i].path, (int)job->act, job->kept,
			rsb_syncplan_stays(job));
		ck_assert_int_eq(job->unit == RSB_SYNCPLAN_UNIT_FIRST, i == 0);
	}
	ck_assert_str_eq(rsb_syncplan_unit(&plan.jobs[0], path), ".git");
	rsb_syncplan_count(&plan, &drop, &all);
	ck_assert_uint_eq(drop, 0);
	ck_assert_uint_eq(all, 4);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { each_of_three_sides, a_directory_beside_a_file,
		a_directory_here_and_a_file, our_own_directory_is_refused, links_that_lead_out,
		what_gives_git_orders, samples_of_hooks_are_none, parts_of_a_repository,
		settings_by_their_names, a_repository_is_one_but_for_its_objects };

	return unit_run("syncplan", tests, RSB_ARRAY_SIZE(tests));
}
