/* SPDX-License-Identifier: MIT */
#include "sidecar/envd/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/fd.h"

static int
give(const struct rsb_tree *tree, const char *path, uint32_t id)
{
	uid_t owner = rsb_userns_id(tree->ns, id);

	if (fchownat(tree->fd, path, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

int
rsb_tree_dir(struct rsb_tree *tree, const char *path, unsigned int mode, uint32_t id)
{
	int r;

	if (mkdirat(tree->fd, path, 0700) < 0 && errno != EEXIST)
		return -errno;
	r = give(tree, path, id);
	if (r < 0)
		return r;
	/* After the owner, whose change takes special bits away, and not by mkdir: no umask. */
	if (fchmodat(tree->fd, path, mode, 0) < 0)
		return -errno;
	return 0;
}

static int
make_file(struct rsb_tree *tree, const char *path, unsigned int mode, uint32_t id, int *ret_fd)
{
	rsb_autoclose int fd =
		openat(tree->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	uid_t owner = rsb_userns_id(tree->ns, id);

	if (fd < 0)
		return -errno;
	if (fchown(fd, owner, owner) < 0 || fchmod(fd, mode & 0777) < 0)
		return -errno;
	*ret_fd = rsb_steal_fd(&fd);
	return 0;
}

int
rsb_tree_text(struct rsb_tree *tree, const char *path, unsigned int mode, const char *text)
{
	rsb_autoclose int fd = -1;
	int r = make_file(tree, path, mode, 0, &fd);

	if (r < 0)
		return r;
	return rsb_fd_write_full(fd, text, strlen(text));
}

int
rsb_tree_link(struct rsb_tree *tree, const char *path, const char *target)
{
	if (symlinkat(target, tree->fd, path) < 0 && errno != EEXIST)
		return -errno;
	return give(tree, path, 0);
}

/* ---- copies ---- */

struct copy {
	struct rsb_tree *tree;
	uint32_t id;
	unsigned int depth;
};

static int copy_entry(struct copy *copy, int dir_fd, const char *name, const char *path);

static int
copy_link(struct copy *copy, int dir_fd, const char *name, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	return rsb_tree_link(copy->tree, path, target);
}

static int
copy_bytes(struct copy *copy, int from, int to, uint64_t size)
{
	while (size > 0) {
		ssize_t n = sendfile(to, from, NULL, size);

		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		copy->tree->n_byte += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return 0;
}

static int
copy_file(struct copy *copy, int dir_fd, const char *name, const char *path)
{
	rsb_autoclose int from =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	rsb_autoclose int to = -1;
	struct stat st;
	int r;

	if (from < 0)
		return -errno;
	if (fstat(from, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH))
		return 0;
	if (copy->tree->n_byte + (uint64_t)st.st_size > RSB_TREE_BYTES_MAX)
		return -EFBIG;
	r = make_file(copy->tree, path, (st.st_mode & 0111) ? 0755 : 0644, copy->id, &to);
	if (r < 0)
		return r;
	return copy_bytes(copy, from, to, (uint64_t)st.st_size);
}

static int
copy_dir(struct copy *copy, int dir_fd, const char *name, const char *path)
{
	rsb_autoclosedir DIR *dir = NULL;
	rsb_autoclose int fd =
		openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	int r;

	if (fd < 0)
		return -errno;
	if (copy->depth >= RSB_TREE_DEPTH_MAX)
		return 0;
	r = rsb_tree_dir(copy->tree, path, 0755, copy->id);
	if (r < 0)
		return r;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)rsb_steal_fd(&fd);
	copy->depth++;
	while (r >= 0 && (entry = readdir(dir))) {
		char below[PATH_MAX];

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) >=
			(int)sizeof(below))
			continue;
		r = copy_entry(copy, dirfd(dir), entry->d_name, below);
	}
	copy->depth--;
	return r;
}

static int
copy_entry(struct copy *copy, int dir_fd, const char *name, const char *path)
{
	struct stat st;
	int r = 0;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == EACCES ? 0 : -errno;
	if (++copy->tree->n_file > RSB_TREE_FILES_MAX)
		return -EFBIG;
	if (S_ISLNK(st.st_mode))
		r = copy_link(copy, dir_fd, name, path);
	else if (S_ISREG(st.st_mode))
		r = copy_file(copy, dir_fd, name, path);
	else if (S_ISDIR(st.st_mode) && (st.st_mode & S_IROTH))
		r = copy_dir(copy, dir_fd, name, path);
	/* Gone meanwhile, or readable by some users only. */
	return r == -ENOENT || r == -EACCES ? 0 : r;
}

int
rsb_tree_copy(struct rsb_tree *tree, const char *host, const char *path, uint32_t id)
{
	struct copy copy = { .tree = tree, .id = id };

	return copy_entry(&copy, AT_FDCWD, host, path);
}
