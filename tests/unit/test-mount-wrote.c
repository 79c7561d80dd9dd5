/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuse/gitplace.h"
#include "fuse/seen.h"
#include "fuse/wrote.h"
#include "tests/unit/unit.h"

#define TEXT "[core]\n"

/* A repository, and as much of a daemon as takes notes. */
struct world {
	struct rsb_shared *shared;
	struct rsb_fs fs;
	struct rsb_inode *root;
	struct rsb_inode *git;
	uint64_t id;
};

static void
on_forget(void *arg, uint64_t id, uint64_t n)
{
	(void)arg;
	(void)id;
	(void)n;
}

static struct rsb_inode *
seen(struct world *w, mode_t type, struct rsb_inode *dir, const char *name)
{
	const struct rsb_attr attr = { .ino = ++w->id, .mode = type | 0755, .nlink = 1 };
	struct rsb_inode *inode;

	ck_assert_int_eq(rsb_inode_given(w->fs.inodes, w->id, &attr, &inode), 0);
	rsb_seen_hint(inode, dir, rsb_bytes_str(name));
	return inode;
}

/* A file that a local program made. */
static struct rsb_inode *
written(struct world *w, struct rsb_inode *dir, const char *name)
{
	struct rsb_inode *inode = seen(w, S_IFREG, dir, name);

	rsb_wrote_begin(&w->fs, inode, (struct rsb_bytes){ 0 }, RSB_WRITER_PROGRAM);
	rsb_wrote_put(&w->fs, inode, 0, rsb_bytes_str(TEXT), false, RSB_WRITER_PROGRAM);
	return inode;
}

static void
world_new(struct world *w)
{
	*w = (struct world){ .id = 1 };
	rsb_list_init(&w->fs.wrotes);
	ck_assert_int_eq(rsb_shared_new(&w->shared, NULL), 0);
	ck_assert_int_eq(rsb_inodes_new(w->shared, on_forget, w, &w->fs.inodes), 0);
	w->root = rsb_inode_root(w->fs.inodes);
	w->git = seen(w, S_IFDIR, w->root, ".git");
}

static void
world_free(struct world *w)
{
	rsb_inodes_free(w->fs.inodes);
	ck_assert_uint_eq(w->fs.wrote_size, 0);
	rsb_shared_free(w->shared);
}

static bool
is_at(const struct rsb_inode *inode, const char *path)
{
	struct rsb_bytes text;

	if (!rsb_wrote_at(inode, path, &text))
		return false;
	ck_assert_uint_eq(text.size, strlen(TEXT));
	return true;
}

START_TEST(it_is_known_where_it_was_written)
{
	struct world w;
	struct rsb_inode *message;

	world_new(&w);
	message = written(&w, w.git, "COMMIT_EDITMSG");
	ck_assert(is_at(message, ".git/COMMIT_EDITMSG"));
	ck_assert(!is_at(message, ".git/config"));
	/* The sandbox links it: what it holds is known yet, where it is written no more. */
	rsb_seen_hint(message, w.git, rsb_bytes_str("config"));
	ck_assert(!is_at(message, ".git/config"));
	rsb_wrote_begin(&w.fs, message, (struct rsb_bytes){ 0 }, RSB_WRITER_PROGRAM);
	rsb_wrote_put(&w.fs, message, 0, rsb_bytes_str(TEXT), false, RSB_WRITER_PROGRAM);
	ck_assert(!is_at(message, ".git/config") && !is_at(message, ".git/COMMIT_EDITMSG"));
	ck_assert_ptr_nonnull(message->wrote);
	world_free(&w);
}
END_TEST

START_TEST(a_write_after_a_move_by_the_sandbox_has_no_place)
{
	struct world w;
	struct rsb_inode *hooks;
	struct rsb_inode *src;
	struct rsb_inode *hook;

	world_new(&w);
	src = seen(&w, S_IFDIR, w.root, "src");
	hooks = seen(&w, S_IFDIR, w.git, "hooks");
	hook = written(&w, hooks, "x");
	rsb_seen_hint(hooks, src, rsb_bytes_str("hooks"));
	rsb_wrote_put(&w.fs, hook, 0, rsb_bytes_str(TEXT), false, RSB_WRITER_PROGRAM);
	rsb_seen_hint(hooks, w.git, rsb_bytes_str("hooks"));
	ck_assert(!is_at(hook, ".git/hooks/x") && !is_at(hook, "src/hooks/x"));
	world_free(&w);
}
END_TEST

START_TEST(a_local_rename_takes_it_along)
{
	struct world w;
	struct rsb_inode *lock;
	struct rsb_inode *old;

	world_new(&w);
	old = written(&w, w.git, "config");
	lock = written(&w, w.git, "config.lock");
	rsb_wrote_moved(&w.fs, ".git/config.lock", ".git/config", false, true);
	rsb_seen_moved(lock, w.git, rsb_bytes_str("config.lock"), w.git, rsb_bytes_str("config"));
	ck_assert(is_at(lock, ".git/config") && is_at(lock, ".git/config.lock"));
	ck_assert(!is_at(old, ".git/config"));
	/* Changed, it is its own where it lies now, and nowhere else. */
	rsb_wrote_put(&w.fs, lock, 0, rsb_bytes_str(TEXT), false, RSB_WRITER_PROGRAM);
	ck_assert(is_at(lock, ".git/config") && !is_at(lock, ".git/config.lock"));
	/* With the directories above it, but for names that only begin alike. */
	rsb_wrote_moved(&w.fs, ".gi", "a", false, true);
	ck_assert(is_at(lock, ".git/config"));
	rsb_wrote_moved(&w.fs, ".git", "a/.git", false, true);
	ck_assert(is_at(lock, "a/.git/config"));
	old = written(&w, w.git, "description");
	rsb_wrote_moved(&w.fs, "a", ".git", true, true);
	ck_assert(is_at(lock, ".git/.git/config") && is_at(old, "a/description"));
	rsb_wrote_moved(&w.fs, "a", "b", false, false);
	ck_assert(!is_at(old, "b/description"));
	rsb_wrote_linked(lock, ".git/hooks/x");
	ck_assert(is_at(lock, ".git/hooks/x"));
	rsb_wrote_linked(old, ".git/hooks/y");
	ck_assert(!is_at(old, ".git/hooks/y"));
	old = written(&w, w.git, "a");
	for (char name = 'a'; name < 'h'; name++) {
		const char from[] = { '.', 'g', 'i', 't', '/', name, '\0' };
		const char to[] = { '.', 'g', 'i', 't', '/', (char)(name + 1), '\0' };

		rsb_wrote_moved(&w.fs, from, to, false, true);
	}
	ck_assert(is_at(old, ".git/h") && !is_at(old, ".git/g"));
	world_free(&w);
}
END_TEST

START_TEST(whoever_is_trusted_least_counts)
{
	struct world w;
	struct rsb_inode *file;

	world_new(&w);
	file = written(&w, w.git, "config.lock");
	ck_assert_int_eq(rsb_wrote_by(file), RSB_WRITER_PROGRAM);
	rsb_wrote_put(&w.fs, file, 0, rsb_bytes_str(TEXT), false, RSB_WRITER_GIT_FRESH);
	rsb_wrote_put(&w.fs, file, 0, rsb_bytes_str(TEXT), false, RSB_WRITER_GIT_LOCK);
	ck_assert_int_eq(rsb_wrote_by(file), RSB_WRITER_GIT_FRESH);
	rsb_wrote_adopt(file);
	ck_assert_int_eq(rsb_wrote_by(file), RSB_WRITER_PROGRAM);
	rsb_wrote_cut(&w.fs, file, 1, RSB_WRITER_GIT);
	ck_assert_int_eq(rsb_wrote_by(file), RSB_WRITER_GIT);
	/* All that was there is gone, and so are its writers. */
	rsb_wrote_cut(&w.fs, file, 0, RSB_WRITER_GIT_LOCK);
	ck_assert_int_eq(rsb_wrote_by(file), RSB_WRITER_GIT_LOCK);
	rsb_wrote_drop(file);
	ck_assert_int_eq(rsb_wrote_by(file), RSB_WRITER_GIT_FRESH);
	world_free(&w);
}
END_TEST

START_TEST(a_write_after_others_could_write_leaves_it_unknown)
{
	struct world w;
	struct rsb_inode *inode;

	world_new(&w);
	w.fs.cache.generation = 7;
	inode = written(&w, w.git, "config");
	ck_assert_uint_eq(rsb_wrote_generation(inode), 7);
	w.fs.cache.generation = 8;
	rsb_wrote_put(&w.fs, inode, 1, rsb_bytes_str("x"), false, RSB_WRITER_PROGRAM);
	ck_assert_uint_eq(rsb_wrote_generation(inode), 0);
	rsb_wrote_put(&w.fs, inode, 2, rsb_bytes_str("x"), false, RSB_WRITER_PROGRAM);
	ck_assert_uint_eq(rsb_wrote_generation(inode), 0);
	rsb_wrote_begin(&w.fs, inode, rsb_bytes_str(TEXT), RSB_WRITER_PROGRAM);
	ck_assert_uint_eq(rsb_wrote_generation(inode), 8);
	world_free(&w);
}
END_TEST

START_TEST(git_means_what_it_writes_when_it_is_told_to)
{
	static const struct {
		enum rsb_git_kind kind;
		enum rsb_writer last; /* that means it */
	} kinds[] = {
		{ RSB_GIT_HOOK, RSB_WRITER_PROGRAM },
		{ RSB_GIT_ATTRIBUTES, RSB_WRITER_PROGRAM },
		{ RSB_GIT_REMOTE, RSB_WRITER_PROGRAM },
		{ RSB_GIT_CONFIG, RSB_WRITER_GIT_LOCK },
		{ RSB_GIT_ALTERNATES, RSB_WRITER_GIT_LOCK },
		{ RSB_GIT_RERERE, RSB_WRITER_GIT_LOCK },
		{ RSB_GIT_GITFILE, RSB_WRITER_GIT },
		{ RSB_GIT_COMMONDIR, RSB_WRITER_GIT },
		{ RSB_GIT_GITDIR, RSB_WRITER_GIT },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(kinds); i++) {
		for (int w = RSB_WRITER_PROGRAM; w <= RSB_WRITER_GIT_FRESH; w++)
			ck_assert_int_eq(rsb_writer_means_it((enum rsb_writer)w, kinds[i].kind),
				w <= (int)kinds[i].last);
	}
	/* This is not git; of a process that nobody knows nothing is said. */
	ck_assert(!rsb_writer_is_git(getpid()));
	ck_assert(rsb_writer_is_git(0) && rsb_writer_is_git(INT32_MAX));
}
END_TEST

START_TEST(places_count_for_the_maximum)
{
	char name[200];
	struct world w;

	world_new(&w);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (size_t i = 0; i < RSB_WROTE_BYTES_MAX / sizeof(name); i++)
		(void)written(&w, w.git, name);
	ck_assert_uint_le(w.fs.wrote_size, RSB_WROTE_BYTES_MAX);
	world_free(&w);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		it_is_known_where_it_was_written,
		a_write_after_a_move_by_the_sandbox_has_no_place,
		a_local_rename_takes_it_along,
		whoever_is_trusted_least_counts,
		git_means_what_it_writes_when_it_is_told_to,
		a_write_after_others_could_write_leaves_it_unknown,
		places_count_for_the_maximum,
	};

	return unit_run("mount-wrote", tests, RSB_ARRAY_SIZE(tests));
}
