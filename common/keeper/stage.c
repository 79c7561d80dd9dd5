/* SPDX-License-Identifier: MIT */
#include "keeper/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/state.h"
#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/str.h"
#include "util/thread.h"

#define PARENT ".rsb"
#define PREFIX "sync-"
#define MODE 0700
#define TAKE_TRIES 64u
#define EMPTY_TRIES 64u
#define BLOCK_MAX ((size_t)8 << 20)

struct rsb_stage {
	int root_fd;
	int fd;
	char *path; /* below root_fd */
	bool made_parent;
	struct rsb_extract_owner owner;
};

/* One that may be listed again; whether there was any. */
static bool
open_blind(int fd, const struct rsb_tree *tree)
{
	bool any = false;

	for (size_t i = 0; i < tree->n; i++) {
		const char *name;
		rsb_autoclose int dir = -1;

		if (!tree->leaves[i].blind)
			continue;
		dir = rsb_beneath_parent(fd, tree->leaves[i].path, &name);
		any = (dir >= 0 && fchmodat(dir, name, 0700, 0) == 0) || any;
	}
	return any;
}

/* Whatever modes directories have. */
static int
empty(int fd)
{
	struct rsb_tree tree = { 0 };
	int r = 0;

	for (unsigned int n = 0; n < EMPTY_TRIES && r >= 0; n++) {
		rsb_tree_done(&tree);
		r = rsb_tree_walk(&tree, fd, NULL);
		if (r >= 0 && !open_blind(fd, &tree))
			break;
	}
	for (size_t i = tree.n; i-- > 0;) {
		const char *name;
		rsb_autoclose int dir = rsb_beneath_parent(fd, tree.leaves[i].path, &name);
		int flags = S_ISDIR(tree.leaves[i].mode) ? AT_REMOVEDIR : 0;

		if (dir >= 0 && unlinkat(dir, name, flags) < 0 && r >= 0)
			r = -errno;
	}
	rsb_tree_done(&tree);
	return r;
}

int
rsb_stage_remove(int root_fd, const char *path)
{
	const char *name;
	rsb_autoclose int dir = rsb_beneath_parent(root_fd, path, &name);
	rsb_autoclose int fd = dir < 0 ? -1 : rsb_beneath_open(dir, name, O_RDONLY | O_DIRECTORY);
	int r;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	r = fd < 0 ? 0 : empty(fd);
	if (r >= 0 && unlinkat(dir, name, fd < 0 ? 0 : AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

/* ---- what was left ---- */

static bool
is_it_still(int dir_fd, const char *path, int fd)
{
	struct stat named, opened;

	return fstat(fd, &opened) == 0 && fstatat(dir_fd, path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/* Whether it was one that nobody uses; only what looks as we make them. */
static bool
sweep_one(int parent_fd, const char *name)
{
	rsb_autoclose int fd = -1;
	struct stat st;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 ||
		rsb_state_name_check(name + strlen(PREFIX), NULL) < 0)
		return false;
	fd = rsb_beneath_open(parent_fd, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 ||
		(st.st_mode & 0777) != MODE || !is_it_still(parent_fd, name, fd))
		return false;
	(void)empty(fd);
	return unlinkat(parent_fd, name, AT_REMOVEDIR) == 0;
}

void
rsb_stage_sweep(int root_fd)
{
	rsb_autoclosedir DIR *dir = NULL;
	const struct dirent *entry;
	bool any = false;
	int fd = rsb_beneath_open(root_fd, PARENT, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return;
	dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		any = sweep_one(fd, entry->d_name) || any;
	/* If that was all, he who was killed made it. */
	if (any)
		(void)unlinkat(root_fd, PARENT, AT_REMOVEDIR);
}

/* ---- making one ---- */

/* -EAGAIN: somebody took it for left behind before it was ours. */
static int
take(struct rsb_stage *stage)
{
	rsb_autoclose int fd = -1;
	int r;

	if (mkdirat(stage->root_fd, stage->path, MODE) < 0 && errno != EEXIST)
		return errno == ENOENT ? -EAGAIN : -errno;
	fd = rsb_beneath_open(stage->root_fd, stage->path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd == -ENOENT ? -EAGAIN : fd;
	do
		r = flock(fd, LOCK_EX);
	while (r < 0 && errno == EINTR);
	/* A file system without them: then nobody can have it, and nothing there is swept. */
	if (r == 0 && !is_it_still(stage->root_fd, stage->path, fd))
		return -EAGAIN;
	stage->fd = rsb_steal_fd(&fd);
	return 0;
}

static int
make(struct rsb_stage *stage)
{
	struct stat st;
	int r;

	if (fstat(stage->root_fd, &st) < 0)
		return -errno;
	/* What root makes in somebody's directory is his. */
	stage->owner = (struct rsb_extract_owner){
		.set = geteuid() == 0, .uid = st.st_uid, .gid = st.st_gid
	};
	r = -EAGAIN;
	for (unsigned int n = 0; n < TAKE_TRIES && r == -EAGAIN; n++) {
		if (mkdirat(stage->root_fd, PARENT, 0755) == 0)
			stage->made_parent = true;
		else if (errno != EEXIST)
			return -errno;
		r = take(stage);
	}
	if (r >= 0 && fchmod(stage->fd, MODE) < 0)
		r = -errno;
	return r < 0 ? r : empty(stage->fd);
}

int
rsb_stage_open(int root_fd, const char *name, struct rsb_stage **ret_stage, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_stage_closep) struct rsb_stage *stage = rsb_new(struct rsb_stage);
	int r;

	if (!stage)
		return -ENOMEM;
	stage->root_fd = root_fd;
	stage->fd = -1;
	stage->path = rsb_str_printf(PARENT "/" PREFIX "%s", name);
	r = stage->path ? make(stage) : -ENOMEM;
	if (r < 0)
		return rsb_diag_set(diag, r, "%s cannot be made in the directory: %s",
			stage->path ? stage->path : PARENT, strerror(-r));
	*ret_stage = rsb_steal(&stage);
	return 0;
}

void
rsb_stage_close(struct rsb_stage *stage)
{
	if (!stage)
		return;
	if (stage->fd >= 0) {
		(void)empty(stage->fd);
		(void)unlinkat(stage->root_fd, stage->path, AT_REMOVEDIR);
	}
	if (stage->made_parent)
		(void)unlinkat(stage->root_fd, PARENT, AT_REMOVEDIR);
	rsb_cleanup_close(&stage->fd);
	free(stage->path);
	free(stage);
}

int
rsb_stage_fd(const struct rsb_stage *stage)
{
	return stage->fd;
}

/* ---- filling ---- */

struct unpack {
	const struct rsb_stage *stage;
	const struct rsb_stage_fill *fill;
	int fd; /* {thread} closed by it */
	struct rsb_tar_result result;
};

static void *
unpack(void *arg)
{
	struct unpack *job = arg;

	rsb_tar_extract(
		job->fd, job->stage->fd, &job->stage->owner, &job->fill->limits, &job->result);
	rsb_cleanup_close(&job->fd);
	return NULL;
}

static int
send_all(int fd, struct rsb_bytes data)
{
	while (data.size) {
		ssize_t n = send(fd, data.data, data.size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data.data += n;
		data.size -= (size_t)n;
	}
	return 0;
}

/* 1: the unpacker wants no more; what it says counts. */
static int
feed(const struct rsb_stage_fill *fill, int fd)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf block = { .max = BLOCK_MAX };
	int r;

	do {
		rsb_buf_clear(&block);
		r = rsb_haul_read(fill->haul, &block);
		if (r > 0 && send_all(fd, rsb_buf_view(&block)) < 0)
			return 1;
		if (r > 0 && fill->moved)
			fill->moved(fill->arg, rsb_buf_len(&block));
	} while (r > 0);
	return r;
}

int
rsb_stage_fill(struct rsb_stage *stage, const struct rsb_stage_fill *fill, struct rsb_diag *diag)
{
	struct unpack job = { .stage = stage, .fill = fill, .fd = -1 };
	char problem[RSB_DIAG_MAX];
	pthread_t thread;
	int fds[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	job.fd = fds[1];
	r = rsb_thread_start("rsb-unpack", unpack, &job, &thread);
	if (r < 0) {
		(void)close(fds[0]);
		(void)close(fds[1]);
		return r;
	}
	r = feed(fill, fds[0]);
	(void)close(fds[0]);
	(void)pthread_join(thread, NULL); /* it is ours, and ends now */
	if (r < 0) {
		rsb_haul_explain(fill->haul, r, diag);
		return r;
	}
	if (r == 0) {
		r = rsb_haul_finish(fill->haul, diag);
		if (r < 0)
			return r;
	}
	if (job.result.error < 0) {
		rsb_str_escape(rsb_bytes_str(job.result.problem.text), problem, sizeof problem);
		return rsb_diag_set(diag, job.result.error, "cannot take %s", problem);
	}
	return r > 0 ? -EPIPE : 0;
}

int
rsb_stage_replace(const struct rsb_stage *stage, const char *path, struct rsb_bytes data)
{
	const char *name;
	rsb_autoclose int dir = rsb_beneath_parent(stage->fd, path, &name);
	rsb_autoclose int fd = -1;
	struct stat st;

	if (dir < 0)
		return dir;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* It may have other names. */
	if (unlinkat(dir, name, 0) < 0)
		return -errno;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fchmod(fd, st.st_mode & 0777) < 0 ||
		(stage->owner.set && fchown(fd, stage->owner.uid, stage->owner.gid) < 0))
		return -errno;
	return rsb_fd_write_full(fd, data.data, data.size);
}

int
rsb_stage_flush(const struct rsb_stage *stage)
{
	return syncfs(stage->fd) < 0 ? -errno : 0;
}

/* Also what its modes close to us. */
static int
hash(const struct rsb_stage *stage, struct rsb_tree_leaf *leaf)
{
	int r = rsb_tree_hash(stage->fd, leaf);
	const char *name;
	rsb_autoclose int dir = -1;

	if (r != -EACCES)
		return r;
	dir = rsb_beneath_parent(stage->fd, leaf->path, &name);
	if (dir < 0 || fchmodat(dir, name, 0600, 0) < 0)
		return -EACCES;
	r = rsb_tree_hash(stage->fd, leaf);
	return fchmodat(dir, name, leaf->mode & 01777, 0) < 0 ? -errno : r;
}

int
rsb_stage_tree(const struct rsb_stage *stage, struct rsb_tree *tree)
{
	int r = rsb_tree_walk(tree, stage->fd, NULL);

	for (size_t i = 0; i < tree->n && r >= 0; i++)
		if (S_ISREG(tree->leaves[i].mode))
			r = hash(stage, &tree->leaves[i]);
	return r;
}
