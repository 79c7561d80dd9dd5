/* SPDX-License-Identifier: MIT */
#include "keeper/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define TRASH_SIZE 32

enum kind {
	MADE_DIR,    /* path */
	REMOVED_DIR, /* path, with mode */
	SWAPPED,     /* path with staged */
	MOVED_IN,    /* staged to path */
	MOVED_OUT,   /* path to staged */
};

struct step {
	enum kind kind;
	mode_t mode;
	char *path;
	char *staged;
};

struct rsb_publish {
	int root_fd;
	int stage_fd;
	struct step *steps;
	size_t n;
	size_t cap;
	uint64_t n_trash;
};

int
rsb_publish_new(int root_fd, int stage_fd, struct rsb_publish **ret_publish)
{
	struct rsb_publish *publish = rsb_new(struct rsb_publish);

	if (!publish)
		return -ENOMEM;
	publish->root_fd = root_fd;
	publish->stage_fd = stage_fd;
	*ret_publish = publish;
	return 0;
}

void
rsb_publish_free(struct rsb_publish *publish)
{
	if (!publish)
		return;
	for (size_t i = 0; i < publish->n; i++) {
		free(publish->steps[i].path);
		free(publish->steps[i].staged);
	}
	free(publish->steps);
	free(publish);
}

/* Before it is done, so that nothing done is without memory. *ret_step stays until the next. */
static int
prepare(struct rsb_publish *publish, const char *path, const char *staged, struct step **ret_step)
{
	struct step *step;

	if (publish->n == publish->cap) {
		size_t cap = publish->cap ? 2 * publish->cap : 64;
		struct step *steps = reallocarray(publish->steps, cap, sizeof(*steps));

		if (!steps)
			return -ENOMEM;
		publish->steps = steps;
		publish->cap = cap;
	}
	step = &publish->steps[publish->n];
	*step = (struct step){ .path = strdup(path), .staged = strdup(staged) };
	if (!step->path || !step->staged) {
		free(step->path);
		free(step->staged);
		return -ENOMEM;
	}
	*ret_step = step;
	return 0;
}

static int
settle(struct rsb_publish *publish, struct step *step, int r)
{
	if (r >= 0) {
		publish->n++;
		return 0;
	}
	free(step->path);
	free(step->staged);
	return r;
}

/* Renames a (below a_fd) to b (below b_fd). */
static int
move(int a_fd, const char *a, int b_fd, const char *b, unsigned int flags)
{
	const char *a_name, *b_name;
	rsb_autoclose int a_dir = rsb_beneath_parent(a_fd, a, &a_name);
	rsb_autoclose int b_dir = a_dir < 0 ? -1 : rsb_beneath_parent(b_fd, b, &b_name);

	if (a_dir < 0 || b_dir < 0)
		return a_dir < 0 ? a_dir : b_dir;
	return renameat2(a_dir, a_name, b_dir, b_name, flags) < 0 ? -errno : 0;
}

static int64_t
to_ns(const struct timespec *ts)
{
	return (int64_t)ts->tv_sec * (int64_t)RSB_NSEC_PER_SEC + ts->tv_nsec;
}

/*
 * Whether the inode is the one that was looked at: by number, and by its times but that of change,
 * which a rename sets. *ret_mode: of it.
 */
static int
check(int root_fd, const char *path, const struct rsb_stamp *expected, bool moved)
{
	const char *name;
	rsb_autoclose int dir = rsb_beneath_parent(root_fd, path, &name);
	struct stat st;

	if (dir < 0)
		return dir;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (st.st_ino != expected->ino || to_ns(&st.st_mtim) != expected->mtime_ns ||
		S_ISDIR(st.st_mode))
		return -EAGAIN;
	if (!moved && expected->ctime_ns && to_ns(&st.st_ctim) != expected->ctime_ns)
		return -EAGAIN;
	return 0;
}

int
rsb_publish_dir(struct rsb_publish *publish, const char *path)
{
	const char *name;
	rsb_autoclose int dir = rsb_beneath_parent(publish->root_fd, path, &name);
	struct step *step;
	int r;

	if (dir < 0)
		return dir;
	r = prepare(publish, path, "", &step);
	if (r < 0)
		return r;
	step->kind = MADE_DIR;
	r = mkdirat(dir, name, 0755) < 0 ? -errno : 0;
	r = settle(publish, step, r);
	return r == -EEXIST ? 0 : r;
}

int
rsb_publish_away(struct rsb_publish *publish, const char *path)
{
	char trash[TRASH_SIZE];
	struct step *step;
	int r;

	(void)snprintf(trash, sizeof(trash), ".old.%llu", (unsigned long long)publish->n_trash++);
	r = prepare(publish, path, trash, &step);
	if (r < 0)
		return r;
	step->kind = MOVED_OUT;
	return settle(publish, step,
		move(publish->root_fd, path, publish->stage_fd, trash, RENAME_NOREPLACE));
}

static int
move_in(struct rsb_publish *publish, const char *path, const char *staged)
{
	struct step *step;
	int r = prepare(publish, path, staged, &step);

	if (r < 0)
		return r;
	step->kind = MOVED_IN;
	r = settle(publish, step,
		move(publish->stage_fd, staged, publish->root_fd, path, RENAME_NOREPLACE));
	return r == -EEXIST ? -EAGAIN : r;
}

/* Who writes to the old inode meanwhile shows when it is out of the way. */
static int
swap(struct rsb_publish *publish, const char *path, const char *staged,
	const struct rsb_stamp *expected)
{
	struct step *step;
	int r = prepare(publish, path, staged, &step);

	if (r < 0)
		return r;
	step->kind = SWAPPED;
	r = move(publish->stage_fd, staged, publish->root_fd, path, RENAME_EXCHANGE);
	if (r == 0 && check(publish->stage_fd, staged, expected, true) < 0) {
		r = move(publish->stage_fd, staged, publish->root_fd, path, RENAME_EXCHANGE);
		r = r < 0 ? r : -EAGAIN;
	}
	return settle(publish, step, r);
}

int
rsb_publish_put(struct rsb_publish *publish, const char *path, const char *staged,
	const struct rsb_stamp *expected)
{
	int r;

	if (!expected)
		return move_in(publish, path, staged);
	r = check(publish->root_fd, path, expected, false);
	if (r == 0)
		r = swap(publish, path, staged, expected);
	/* A file system that cannot exchange. */
	if (r == -EINVAL || r == -ENOSYS) {
		r = rsb_publish_away(publish, path);
		if (r == 0)
			r = move_in(publish, path, staged);
	}
	return r;
}

int
rsb_publish_remove(struct rsb_publish *publish, const char *path, const struct rsb_stamp *expected)
{
	int r = check(publish->root_fd, path, expected, false);

	return r < 0 ? r : rsb_publish_away(publish, path);
}

int
rsb_publish_remove_dir(struct rsb_publish *publish, const char *path)
{
	const char *name;
	rsb_autoclose int dir = rsb_beneath_parent(publish->root_fd, path, &name);
	struct step *step;
	struct stat st;
	int r;

	if (dir < 0)
		return dir;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	r = prepare(publish, path, "", &step);
	if (r < 0)
		return r;
	step->kind = REMOVED_DIR;
	step->mode = st.st_mode & 01777;
	return settle(publish, step, unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno : 0);
}

static void
undo_dir(struct rsb_publish *publish, const struct step *step)
{
	const char *name;
	rsb_autoclose int dir = rsb_beneath_parent(publish->root_fd, step->path, &name);
	int r = 0;

	if (dir < 0)
		return;
	if (step->kind == MADE_DIR)
		r = unlinkat(dir, name, AT_REMOVEDIR);
	else if (mkdirat(dir, name, step->mode) == 0)
		r = fchmodat(dir, name, step->mode, 0);
	(void)r;
}

void
rsb_publish_undo(struct rsb_publish *publish)
{
	while (publish->n) {
		struct step *step = &publish->steps[--publish->n];

		/* As far as the file system lets us: what cannot be put back lies in the stage. */
		if (step->kind == SWAPPED)
			(void)move(publish->stage_fd, step->staged, publish->root_fd, step->path,
				RENAME_EXCHANGE);
		else if (step->kind == MOVED_IN)
			(void)move(publish->root_fd, step->path, publish->stage_fd, step->staged,
				RENAME_NOREPLACE);
		else if (step->kind == MOVED_OUT)
			(void)move(publish->stage_fd, step->staged, publish->root_fd, step->path,
				RENAME_NOREPLACE);
		else
			undo_dir(publish, step);
		free(step->path);
		free(step->staged);
	}
}
