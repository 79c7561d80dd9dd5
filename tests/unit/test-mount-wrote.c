/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* As on_rename() does it. */
static void
moved(struct world *w, struct rsb_inode *dir, const char *name, struct rsb_inode *newdir,
	const char *newname, bool swap)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf from = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf to = { 0 };

	ck_assert_int_eq(rsb_seen_path(dir, name, &from), 0);
	ck_assert_int_eq(rsb_seen_path(newdir, newname, &to), 0);
	rsb_wrote_moved(&w->fs,
		&(struct rsb_wrote_name){ dir, name, (const char *)rsb_buf_head(&from) },
		&(struct rsb_wrote_name){ newdir, newname, (const char *)rsb_buf_head(&to) }, swap);
	if (!swap)
		rsb_seen_moved_all(w->fs.inodes, dir, rsb_bytes_str(name), newdir,
			rsb_bytes_str(newname), true);
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
	struct rsb_inode *dir;

	world_new(&w);
	old = written(&w, w.git, "config");
	lock = written(&w, w.git, "config.lock");
	moved(&w, w.git, "config.lock", w.git, "config", false);
	ck_assert(is_at(lock, ".git/config") && is_at(lock, ".git/config.lock"));
	ck_assert(!is_at(old, ".git/config"));
	/* Changed, it is its own where it lies now, and nowhere else. */
	rsb_wrote_put(&w.fs, lock, 0, rsb_bytes_str(TEXT), false, RSB_WRITER_PROGRAM);
	ck_assert(is_at(lock, ".git/config") && !is_at(lock, ".git/config.lock"));
	/* With the directories above it, but for names that only begin alike. */
	moved(&w, w.root, ".gi", w.root, "a", false);
	ck_assert(is_at(lock, ".git/config"));
	dir = seen(&w, S_IFDIR, w.root, "b");
	moved(&w, w.root, ".git", dir, ".git", false);
	ck_assert(is_at(lock, "b/.git/config"));
	rsb_wrote_linked(lock, "b/.git/hooks/x");
	ck_assert(is_at(lock, "b/.git/hooks/x"));
	old = written(&w, w.git, "a");
	for (char name = 'a'; name < 'h'; name++) {
		const char from[] = { name, '\0' };
		const char to[] = { (char)(name + 1), '\0' };

		moved(&w, w.git, from, w.git, to, false);
	}
	ck_assert(is_at(old, "b/.git/h") && !is_at(old, "b/.git/g"));
	lock = written(&w, w.git, "i");
	moved(&w, w.git, "i", w.git, "h", true);
	rsb_seen_moved(lock, w.git, rsb_bytes_str("i"), w.git, rsb_bytes_str("h"));
	rsb_seen_moved(old, w.git, rsb_bytes_str("h"), w.git, rsb_bytes_str("i"));
	ck_assert(is_at(lock, "b/.git/h") && is_at(old, "b/.git/i"));
	/* To where the sandbox has put the directory. */
	dir = seen(&w, S_IFDIR, w.git, "c");
	rsb_seen_hint(dir, w.root, rsb_bytes_str("c"));
	moved(&w, w.git, "h", dir, "h", false);
	ck_assert(!is_at(lock, "c/h"));
	rsb_wrote_linked(lock, "b/.git/hooks/y");
	ck_assert(!is_at(lock, "b/.git/hooks/y"));
	world_free(&w);
}
END_TEST

START_TEST(a_rename_moves_what_lies_there_alone)
{
	struct world w;
	struct rsb_inode *src;
	struct rsb_inode *astray;
	struct rsb_inode *unseen;
	struct rsb_inode *lock;
	struct rsb_inode *hooks;

	world_new(&w);
	src = seen(&w, S_IFDIR, w.root, "src");
	/* The sandbox moves it away, and that is seen. */
	hooks = seen(&w, S_IFDIR, src, "hooks");
	astray = written(&w, hooks, "x");
	ck_assert(is_at(astray, "src/hooks/x"));
	rsb_seen_hint(astray, src, rsb_bytes_str("e"));
	moved(&w, hooks, "x", w.git, "config", false);
	ck_assert(!is_at(astray, ".git/config"));
	astray = written(&w, w.git, "config.lock");
	rsb_seen_hint(astray, src, rsb_bytes_str("e"));
	moved(&w, w.git, "config.lock", w.git, "config", false);
	ck_assert(!is_at(astray, ".git/config"));
	/* Or is not: another is made there. */
	unseen = written(&w, w.git, "config.lock");
	lock = written(&w, w.git, "config.lock");
	ck_assert(!is_at(unseen, ".git/config.lock") && is_at(lock, ".git/config.lock"));
	moved(&w, w.git, "config.lock", w.git, "config", false);
	ck_assert(!is_at(unseen, ".git/config") && is_at(lock, ".git/config"));
	/* Or seen there, by whoever wrote it. */
	unseen = written(&w, w.git, "config.lock");
	lock = seen(&w, S_IFREG, w.git, "config.lock");
	rsb_wrote_named(&w.fs, w.git, rsb_bytes_str("config.lock"), unseen);
	ck_assert(is_at(unseen, ".git/config.lock"));
	rsb_wrote_named(&w.fs, w.git, rsb_bytes_str("config.lock"), lock);
	ck_assert(!is_at(unseen, ".git/config.lock"));
	/* Or it is gone. */
	unseen = written(&w, w.git, "config.lock");
	rsb_wrote_named(&w.fs, w.git, rsb_bytes_str("config.lock"), NULL);
	ck_assert(!is_at(unseen, ".git/config.lock"));
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
		{ RSB_GIT_TODO, RSB_WRITER_GIT_LOCK },
		{ RSB_GIT_OPTS, RSB_WRITER_GIT_LOCK },
		{ RSB_GIT_AUTHOR, RSB_WRITER_GIT_LOCK },
		{ RSB_GIT_OPTION, RSB_WRITER_GIT },
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

START_TEST(git_is_told_by_how_it_opens_a_lock)
{
	static const struct {
		const char *name;
		int flags;
		enum rsb_writer writer;
	} opens[] = {
		{ "config.lock", O_RDWR | O_CREAT | O_EXCL, RSB_WRITER_GIT_LOCK },
		/* A file of a commit, or what is merged into one. */
		{ "config.lock", O_WRONLY | O_CREAT | O_EXCL, RSB_WRITER_GIT_FRESH },
		{ "config.lock", O_WRONLY | O_CREAT | O_TRUNC, RSB_WRITER_GIT },
		{ "config.lock", 0, RSB_WRITER_GIT },
		{ "config", O_RDWR | O_CREAT | O_EXCL, RSB_WRITER_GIT_FRESH },
		{ "config", O_WRONLY | O_CREAT | O_TRUNC, RSB_WRITER_GIT },
	};
	struct world w;

	world_new(&w);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(opens); i++) {
		const struct rsb_inode *file = seen(&w, S_IFREG, w.git, opens[i].name);

		ck_assert_int_eq(rsb_writer_of(0, file, opens[i].flags), opens[i].writer);
		ck_assert_int_eq(rsb_writer_of(getpid(), file, opens[i].flags), RSB_WRITER_PROGRAM);
	}
	world_free(&w);
}
END_TEST

/* Whether what is at dir/name, cat(1), is taken for git while it runs. */
static bool
is_git_at(const char *dir, const char *name)
{
	char command[512];
	char path[128];
	pid_t pid;
	bool is_git;
	int pipes[2];
	char c;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	(void)snprintf(command, sizeof(command), "cp \"$(command -v cat)\" %s", path);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(pipe(pipes), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		/* Its first byte says that it runs. */
		if (dup2(pipes[1], STDOUT_FILENO) >= 0 && close(pipes[0]) == 0 &&
			close(pipes[1]) == 0)
			execl(path, name, "/dev/zero", NULL);
		_exit(1);
	}
	ck_assert_int_eq(close(pipes[1]), 0);
	ck_assert_int_eq(read(pipes[0], &c, 1), 1);
	is_git = rsb_writer_is_git(pid);
	ck_assert_int_eq(close(pipes[0]), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	return is_git;
}

START_TEST(what_lies_among_gits_programs_may_be_another)
{
	char dir[] = "/tmp/rsb-wrote-XXXXXX";
	char core[sizeof(dir) + sizeof("/git-core")];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(core, sizeof(core), "%s/git-core", dir);
	ck_assert_int_eq(mkdir(core, 0700), 0);
	ck_assert(is_git_at(core, "git") && is_git_at(core, "git-add"));
	ck_assert(!is_git_at(core, "git-lfs"));
	ck_assert(is_git_at(dir, "git") && !is_git_at(dir, "git-add"));
	unit_remove_tree(dir);
}
END_TEST

START_TEST(the_oldest_give_way)
{
	static uint8_t text[RSB_GITALLOW_MAX];
	struct rsb_inode *first;
	struct world w;

	world_new(&w);
	first = written(&w, w.git, "description");
	for (size_t i = 0; i < RSB_WROTES_MAX; i++)
		(void)written(&w, w.git, "config");
	ck_assert_uint_eq(w.fs.n_wrote, RSB_WROTES_MAX);
	ck_assert_ptr_null(first->wrote);
	for (size_t i = 0; i < 2 * RSB_WROTE_BYTES_MAX / sizeof(text); i++) {
		struct rsb_inode *file = written(&w, w.git, "config");

		rsb_wrote_put(&w.fs, file, 0, (struct rsb_bytes){ text, sizeof(text) }, false,
			RSB_WRITER_PROGRAM);
		ck_assert_ptr_nonnull(file->wrote);
		ck_assert_uint_le(w.fs.wrote_size, RSB_WROTE_BYTES_MAX);
	}
	world_free(&w);
	ck_assert_uint_eq(w.fs.n_wrote, 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		it_is_known_where_it_was_written,
		a_write_after_a_move_by_the_sandbox_has_no_place,
		a_local_rename_takes_it_along,
		a_rename_moves_what_lies_there_alone,
		git_is_told_by_how_it_opens_a_lock,
		what_lies_among_gits_programs_may_be_another,
		whoever_is_trusted_least_counts,
		git_means_what_it_writes_when_it_is_told_to,
		a_write_after_others_could_write_leaves_it_unknown,
		the_oldest_give_way,
	};

	return unit_run("mount-wrote", tests, RSB_ARRAY_SIZE(tests));
}
