/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/stat.h>

#include "fuse/gitplace.h"
#include "fuse/gitway.h"
#include "fuse/seen.h"
#include "tests/unit/unit.h"

struct world {
	struct rsb_shared *shared;
	struct rsb_inodes *inodes;
	uint64_t id;
};

static void
on_forget(void *arg, uint64_t id, uint64_t n)
{
	(void)arg;
	(void)id;
	(void)n;
}

static void
world_new(struct world *w)
{
	*w = (struct world){ .id = 1 };
	ck_assert_int_eq(rsb_shared_new(&w->shared, NULL), 0);
	ck_assert_int_eq(rsb_inodes_new(w->shared, on_forget, w, &w->inodes), 0);
}

static void
world_free(struct world *w)
{
	rsb_inodes_free(w->inodes);
	rsb_shared_free(w->shared);
}

/* A new inode, seen as name in dir (NULL: the root); it lives as long as the world. */
static struct rsb_inode *
seen(struct world *w, mode_t type, struct rsb_inode *dir, const char *name)
{
	const struct rsb_attr attr = { .ino = ++w->id, .mode = type | 0755, .nlink = 1 };
	struct rsb_inode *inode;

	ck_assert_int_eq(rsb_inode_given(w->inodes, w->id, &attr, &inode), 0);
	rsb_seen_hint(inode, dir ? dir : rsb_inode_root(w->inodes), rsb_bytes_str(name));
	return inode;
}

/* The kind of the first place, and its path. */
static enum rsb_git_kind
kind(const struct rsb_inode *inode, const char *want_path)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf path = { 0 };
	struct rsb_gitplace place;
	size_t cursor = 0;

	if (!rsb_gitplace_next(inode, &cursor, &place))
		return RSB_GIT_NONE;
	if (want_path) {
		ck_assert_int_eq(rsb_seen_path(place.dir, place.name, &path), 0);
		ck_assert_str_eq((const char *)rsb_buf_head(&path), want_path);
	}
	return place.kind;
}

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

int
main(void)
{
	const TTest *const tests[] = {
		knows_the_files_of_a_repository,
		what_names_other_directories_is_known,
		an_ordinary_directory_is_none,
		the_order_of_looking_plays_no_part,
		other_names_do_not_hide_it,
		too_many_names_make_it_anything,
		links_of_a_repository_are_known,
		what_may_be_renamed_into_place_is_near,
		what_the_sandbox_moves_in_a_repository_is_not_sure,
		a_crash_does_not_make_a_repository_an_ordinary_directory,
		what_is_swapped_for_a_repository_is_one,
		a_repository_that_is_renamed_here_is_one_there,
		where_nobody_knows_is_anywhere,
		what_something_leads_to_is_a_repository,
		a_link_called_git_leads_to_a_repository,
	};

	return unit_run("mount-gitplace", tests, RSB_ARRAY_SIZE(tests));
}
