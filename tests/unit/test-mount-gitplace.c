/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/unit/gitworld.h"

START_TEST(knows_the_files_of_a_repository)
{
	struct world w;
	struct rsb_inode *git;
	struct rsb_inode *hooks;
	struct rsb_inode *info;

	world_new(&w);
	git = seen(&w, S_IFDIR, seen(&w, S_IFDIR, NULL, "a"), ".git");
	hooks = seen(&w, S_IFDIR, git, "hooks");
	info = seen(&w, S_IFDIR, git, "info");
	ck_assert_int_eq(kind(seen(&w, S_IFREG, git, "config"), "a/.git/config"), RSB_GIT_CONFIG);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, git, "config.worktree"), NULL), RSB_GIT_CONFIG);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, git, "commondir"), NULL), RSB_GIT_COMMONDIR);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, hooks, "x"), "a/.git/hooks/x"), RSB_GIT_HOOK);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, hooks, "x.sample"), NULL), RSB_GIT_NONE);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, info, "attributes"), NULL), RSB_GIT_ATTRIBUTES);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, info, "exclude"), NULL), RSB_GIT_NONE);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, NULL, ".git"), ".git"), RSB_GIT_GITFILE);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, git, "HEAD"), NULL), RSB_GIT_NONE);
	world_free(&w);
}
END_TEST

START_TEST(operations_that_are_half_done)
{
	struct world w;
	struct rsb_inode *git;
	struct rsb_inode *dir;

	world_new(&w);
	git = seen(&w, S_IFDIR, NULL, ".git");
	ck_assert_int_eq(kind(seen(&w, S_IFREG, git, "BISECT_NAMES"), NULL), RSB_GIT_OPTION);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, git, "opts"), NULL), RSB_GIT_NONE);
	dir = seen(&w, S_IFDIR, git, "sequencer");
	ck_assert_int_eq(kind(seen(&w, S_IFREG, dir, "opts"), ".git/sequencer/opts"), RSB_GIT_OPTS);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, dir, "todo"), NULL), RSB_GIT_NONE);
	ck_assert(rsb_gitplace_is_near(seen(&w, S_IFREG, dir, "opts.lock")));
	ck_assert(rsb_gitplace_is_link(seen(&w, S_IFLNK, git, "rebase-merge")));
	dir = seen(&w, S_IFDIR, NULL, "rebase-merge");
	ck_assert_int_eq(kind(seen(&w, S_IFREG, dir, "git-rebase-todo"), NULL), RSB_GIT_NONE);
	/* Moved there, whatever it was called before. */
	rsb_seen_hint(dir, git, rsb_bytes_str("rebase-merge"));
	ck_assert_int_eq(kind(seen(&w, S_IFREG, dir, "git-rebase-todo"), NULL), RSB_GIT_TODO);
	world_free(&w);
}
END_TEST

START_TEST(what_names_other_directories_is_known)
{
	struct world w;
	struct rsb_inode *git;
	struct rsb_inode *trees;
	struct rsb_inode *tree;
	struct rsb_inode *file;

	world_new(&w);
	git = seen(&w, S_IFDIR, NULL, ".git");
	trees = seen(&w, S_IFDIR, git, "worktrees");
	tree = seen(&w, S_IFDIR, trees, "w");
	ck_assert_int_eq(
		kind(seen(&w, S_IFREG, tree, "gitdir"), ".git/worktrees/w/gitdir"), RSB_GIT_GITDIR);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, tree, "HEAD"), NULL), RSB_GIT_NONE);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, NULL, "gitdir"), NULL), RSB_GIT_NONE);
	ck_assert(rsb_gitplace_is_link(seen(&w, S_IFLNK, tree, "gitdir")));
	ck_assert(rsb_gitplace_is_link(seen(&w, S_IFLNK, trees, "v")));
	ck_assert(rsb_gitplace_is_link(seen(&w, S_IFLNK, git, "worktrees")));
	/* Moved away it is still what it was. */
	rsb_seen_hint(tree, git, rsb_bytes_str("t"));
	ck_assert_int_eq(kind(seen(&w, S_IFREG, tree, "gitdir"), NULL), RSB_GIT_GITDIR);
	/* Whatever is a directory of objects to somebody. */
	file = seen(&w, S_IFREG, seen(&w, S_IFDIR, NULL, "x"), "alternates");
	ck_assert_int_eq(kind(file, "x/alternates"), RSB_GIT_ALTERNATES);
	ck_assert_int_eq(
		kind(seen(&w, S_IFREG, NULL, "http-alternates"), NULL), RSB_GIT_ALTERNATES);
	ck_assert(rsb_gitplace_is_link(seen(&w, S_IFLNK, NULL, "alternates")));
	/* Read as a configuration it could be both. */
	for (size_t i = 0; i <= 2 * RSB_GITPLACES_MAX; i++) {
		const char name[] = { (char)('a' + i), 0 };

		rsb_seen_hint(file, seen(&w, S_IFDIR, NULL, name), rsb_bytes_str("config"));
	}
	rsb_seen_hint(file, git, rsb_bytes_str("x"));
	for (size_t cursor = 0, n = 0;; n++) {
		struct rsb_gitplace place;

		if (!rsb_gitplace_next(file, &cursor, &place)) {
			ck_assert_uint_ge(n, 1);
			break;
		}
		ck_assert(place.dir || place.kind == RSB_GIT_HOOK);
	}
	world_free(&w);
}
END_TEST

START_TEST(an_ordinary_directory_is_none)
{
	struct world w;
	struct rsb_inode *dir;

	world_new(&w);
	dir = seen(&w, S_IFDIR, NULL, "src");
	ck_assert_int_eq(kind(seen(&w, S_IFREG, dir, "config"), NULL), RSB_GIT_NONE);
	(void)seen(&w, S_IFDIR, dir, "refs");
	ck_assert_int_eq(kind(seen(&w, S_IFREG, dir, "config"), NULL), RSB_GIT_NONE);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, seen(&w, S_IFDIR, dir, "hooks"), "x.ts"), NULL),
		RSB_GIT_NONE);
	world_free(&w);
}
END_TEST

START_TEST(the_order_of_looking_plays_no_part)
{
	struct world w;
	struct rsb_inode *dir;
	struct rsb_inode *config;
	struct rsb_inode *hook;

	world_new(&w);
	dir = seen(&w, S_IFDIR, NULL, "d");
	config = seen(&w, S_IFREG, dir, "config");
	hook = seen(&w, S_IFREG, seen(&w, S_IFDIR, dir, "hooks"), "x");
	ck_assert_int_eq(kind(config, NULL), RSB_GIT_NONE);
	ck_assert_int_eq(kind(hook, NULL), RSB_GIT_NONE);
	(void)seen(&w, S_IFDIR, dir, "objects");
	(void)seen(&w, S_IFDIR, dir, "refs");
	ck_assert_int_eq(kind(config, "d/config"), RSB_GIT_CONFIG);
	ck_assert_int_eq(kind(hook, "d/hooks/x"), RSB_GIT_HOOK);
	world_free(&w);
}
END_TEST

START_TEST(other_names_do_not_hide_it)
{
	struct world w;
	struct rsb_inode *git;
	struct rsb_inode *other;
	struct rsb_inode *config;
	struct rsb_inode *hooks;
	struct rsb_inode *hook;

	world_new(&w);
	git = seen(&w, S_IFDIR, NULL, ".git");
	other = seen(&w, S_IFDIR, NULL, "o");
	config = seen(&w, S_IFREG, git, "config");
	rsb_seen_hint(config, other, rsb_bytes_str("innocent"));
	ck_assert_int_eq(kind(config, ".git/config"), RSB_GIT_CONFIG);
	/* A directory that becomes the hooks takes what it has along. */
	hooks = seen(&w, S_IFDIR, other, "evil");
	hook = seen(&w, S_IFREG, hooks, "post-checkout");
	rsb_seen_hint(hooks, git, rsb_bytes_str("hooks"));
	ck_assert_int_eq(kind(hook, NULL), RSB_GIT_HOOK);
	rsb_seen_hint(hooks, other, rsb_bytes_str("evil"));
	ck_assert_int_eq(kind(hook, NULL), RSB_GIT_HOOK);
	world_free(&w);
}
END_TEST

START_TEST(too_many_names_make_it_anything)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
	struct world w;
	struct rsb_inode *config = NULL;

	world_new(&w);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++) {
		struct rsb_inode *dir = seen(&w, S_IFDIR, NULL, names[i]);

		if (!config)
			config = seen(&w, S_IFREG, dir, "config");
		rsb_seen_hint(config, dir, rsb_bytes_str("config"));
	}
	ck_assert(rsb_gitplace_matters(config));
	world_free(&w);
}
END_TEST

START_TEST(links_of_a_repository_are_known)
{
	struct world w;
	struct rsb_inode *git;

	world_new(&w);
	git = seen(&w, S_IFDIR, NULL, ".git");
	ck_assert(rsb_gitplace_is_link(seen(&w, S_IFLNK, git, "config")));
	ck_assert(rsb_gitplace_is_link(seen(&w, S_IFLNK, git, "hooks")));
	ck_assert(rsb_gitplace_is_link(seen(&w, S_IFLNK, git, "info")));
	ck_assert(rsb_gitplace_is_link(
		seen(&w, S_IFLNK, seen(&w, S_IFDIR, git, "hooks"), "post-checkout")));
	ck_assert(!rsb_gitplace_is_link(seen(&w, S_IFLNK, git, "HEAD")));
	ck_assert(!rsb_gitplace_is_link(seen(&w, S_IFLNK, NULL, ".git")));
	ck_assert(!rsb_gitplace_is_link(seen(&w, S_IFLNK, NULL, "config")));
	ck_assert(!rsb_gitplace_matters(seen(&w, S_IFLNK, git, "config")));
	world_free(&w);
}
END_TEST

START_TEST(what_may_be_renamed_into_place_is_near)
{
	struct world w;
	struct rsb_inode *git;

	world_new(&w);
	git = seen(&w, S_IFDIR, NULL, ".git");
	ck_assert(rsb_gitplace_is_near(seen(&w, S_IFREG, git, "config.lock")));
	ck_assert(rsb_gitplace_is_near(seen(&w, S_IFREG, NULL, ".git")));
	ck_assert(rsb_gitplace_could_be(git, rsb_bytes_str("config")));
	ck_assert(!rsb_gitplace_is_near(seen(&w, S_IFREG, NULL, "config.lock")));
	world_free(&w);
}
END_TEST

START_TEST(what_the_sandbox_moves_in_a_repository_is_not_sure)
{
	struct world w;
	struct rsb_inode *root;
	struct rsb_inode *git;
	struct rsb_inode *hooks;
	struct rsb_inode *hook;
	struct rsb_inode *src;
	struct rsb_inode *file;

	world_new(&w);
	root = rsb_inode_root(w.inodes);
	git = seen(&w, S_IFDIR, NULL, ".git");
	src = seen(&w, S_IFDIR, NULL, "src");
	hooks = seen(&w, S_IFDIR, src, "hooks");
	hook = seen(&w, S_IFREG, hooks, "x");
	file = seen(&w, S_IFREG, git, "COMMIT_EDITMSG");
	ck_assert(rsb_gitplace_is_sure(hook));
	/* Outside nobody minds, and what a local program does is what it seems. */
	rsb_seen_hint(src, root, rsb_bytes_str("lib"));
	rsb_seen_linked(file, git, rsb_bytes_str("config"));
	ck_assert(rsb_gitplace_is_sure(hook));
	ck_assert(rsb_gitplace_is_sure(file));
	rsb_seen_hint(file, git, rsb_bytes_str("COMMIT_EDITMSG"));
	ck_assert(!rsb_gitplace_is_sure(file));
	/* Into a repository, and back: for good, and with all that is below. */
	rsb_seen_hint(hooks, git, rsb_bytes_str("hooks"));
	ck_assert(!rsb_gitplace_is_sure(hook));
	rsb_seen_hint(hooks, src, rsb_bytes_str("hooks"));
	ck_assert(!rsb_gitplace_is_sure(hook));
	/* Not even the repository itself. */
	ck_assert(rsb_gitplace_is_sure(git));
	rsb_seen_hint(git, root, rsb_bytes_str("other"));
	ck_assert(!rsb_gitplace_is_sure(git));
	world_free(&w);
}
END_TEST

/* The kernel asks for all names again but those of the directory that git is in. */
START_TEST(a_crash_does_not_make_a_repository_an_ordinary_directory)
{
	struct world w;
	uint64_t bare, git;
	struct rsb_inode *dir;

	world_new(&w);
	dir = seen(&w, S_IFDIR, NULL, "bare");
	(void)seen(&w, S_IFDIR, dir, "objects");
	(void)seen(&w, S_IFDIR, dir, "refs");
	bare = dir->nodeid;
	git = seen(&w, S_IFDIR, NULL, ".git")->nodeid;
	/* The root is a repository's as well. */
	(void)seen(&w, S_IFREG, NULL, "commondir");
	rsb_inodes_free(w.inodes);
	ck_assert_int_eq(rsb_inodes_new(w.shared, on_forget, &w, &w.inodes), 0);
	dir = rsb_inode_by_nodeid(w.inodes, bare);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, dir, "config"), NULL), RSB_GIT_CONFIG);
	dir = rsb_inode_by_nodeid(w.inodes, git);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, dir, "config"), NULL), RSB_GIT_CONFIG);
	ck_assert_int_eq(kind(seen(&w, S_IFREG, NULL, "config"), NULL), RSB_GIT_CONFIG);
	world_free(&w);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		knows_the_files_of_a_repository,
		operations_that_are_half_done,
		what_names_other_directories_is_known,
		an_ordinary_directory_is_none,
		the_order_of_looking_plays_no_part,
		other_names_do_not_hide_it,
		too_many_names_make_it_anything,
		links_of_a_repository_are_known,
		what_may_be_renamed_into_place_is_near,
		what_the_sandbox_moves_in_a_repository_is_not_sure,
		a_crash_does_not_make_a_repository_an_ordinary_directory,
	};

	return unit_run("mount-gitplace", tests, RSB_ARRAY_SIZE(tests));
}
