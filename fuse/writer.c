/* SPDX-License-Identifier: MIT */
#include "fuse/writer.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/str.h"

/*
 * The program in PATH, or one of those that it runs itself, whose names depend on how it was built;
 * some distributions have another program among them, which writes hooks. By the path alone: its
 * file may be on the mount, where nobody would answer for us.
 */
static bool
is_git_path(char *path)
{
	static const char gone[] = " (deleted)";
	char *name;

	if (rsb_str_ends_with(path, gone))
		path[strlen(path) - strlen(gone)] = '\0';
	name = strrchr(path, '/');
	if (!name)
		return true;
	*name++ = '\0';
	if (strcmp(name, "git") == 0)
		return true;
	return rsb_str_ends_with(path, "/git-core") && strcmp(name, "git-lfs") != 0;
}

bool
rsb_writer_is_git(pid_t pid)
{
	char link[sizeof("/proc//exe") + 3 * sizeof(pid)];
	char path[PATH_MAX + 1];
	ssize_t n;

	if (pid <= 0)
		return true;
	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return true;
	path[n] = '\0';
	return is_git_path(path);
}

enum rsb_writer
rsb_writer_of(pid_t pid, const struct rsb_inode *inode, int flags)
{
	if (!rsb_writer_is_git(pid))
		return RSB_WRITER_PROGRAM;
	if (!(flags & O_EXCL))
		return RSB_WRITER_GIT;
	/* A file of a commit may be called so, and is opened to be written alone. */
	return inode->name && rsb_str_ends_with(inode->name, ".lock") &&
			       (flags & O_ACCMODE) == O_RDWR
		       ? RSB_WRITER_GIT_LOCK
		       : RSB_WRITER_GIT_FRESH;
}

bool
rsb_writer_means_it(enum rsb_writer writer, enum rsb_git_kind kind)
{
	/* Git makes none of these, but for the hooks of a template. */
	if (kind == RSB_GIT_HOOK || kind == RSB_GIT_ATTRIBUTES || kind == RSB_GIT_REMOTE)
		return writer == RSB_WRITER_PROGRAM;
	if (kind == RSB_GIT_CONFIG || kind == RSB_GIT_ALTERNATES || kind == RSB_GIT_RERERE ||
		kind == RSB_GIT_TODO || kind == RSB_GIT_OPTS || kind == RSB_GIT_AUTHOR)
		return writer <= RSB_WRITER_GIT_LOCK;
	return writer != RSB_WRITER_GIT_FRESH;
}
