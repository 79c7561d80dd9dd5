/* SPDX-License-Identifier: MIT */
#include "exec/gitlook.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "keeper/gitsteps.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/str.h"

#define LEVELS_MAX 32u /* directories below each other */

struct look {
	size_t left; /* of RSB_GITLOOK_MAX */
};

static void look_at_repository(struct look *look, const char *dir, size_t level);

static bool
is_repository(const char *dir)
{
	rsb_autofree char *head = rsb_str_path(dir, "HEAD");

	return head && faccessat(AT_FDCWD, head, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool
is_directory(const char *path)
{
	rsb_autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0;
}

static void
look_at(struct look *look, const char *dir, const char *name)
{
	rsb_autofree char *path = rsb_str_path(dir, name);
	rsb_autoclose int fd = -1;
	char byte;

	if (path && look->left) {
		look->left--;
		fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd >= 0)
		(void)!read(fd, &byte, 1);
}

/* What is in dir/name: files, or repositories, and directories of these. */
static void
look_at_all(struct look *look, const char *dir, const char *name, size_t level)
{
	rsb_autofree char *path = rsb_str_path(dir, name);
	const int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	rsb_autoclosedir DIR *all = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (all && look->left && (entry = readdir(all))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		look_at(look, path, entry->d_name);
		if (level < LEVELS_MAX && entry->d_type == DT_DIR) {
			rsb_autofree char *below = rsb_str_path(path, entry->d_name);

			if (below)
				look_at_repository(look, below, level + 1);
		}
	}
}

/* One that is not called .git is known by what somebody looked up in it. */
static void
look_at_marks(struct look *look, const char *dir)
{
	look_at(look, dir, "objects");
	look_at(look, dir, "refs");
	look_at(look, dir, "commondir");
}

static void
look_at_repository(struct look *look, const char *dir, size_t level)
{
	static const char *const lists[] = { "hooks", "remotes", "branches" };
	static const char *const more[] = { "modules", "worktrees" };

	/* A directory of hooks, or of submodules whose names have slashes. */
	if (!is_repository(dir)) {
		look_at_all(look, dir, ".", level);
		return;
	}
	look_at_marks(look, dir);
	look_at(look, dir, "config");
	look_at(look, dir, "config.worktree");
	look_at(look, dir, "gitdir");
	look_at(look, dir, "info/attributes");
	look_at(look, dir, "objects/info/alternates");
	look_at(look, dir, "objects/info/http-alternates");
	for (size_t i = 0; i < RSB_ARRAY_SIZE(lists); i++)
		look_at_all(look, dir, lists[i], LEVELS_MAX);
	for (size_t i = 0; rsb_gitsteps_dirs[i]; i++)
		look_at_all(look, dir, rsb_gitsteps_dirs[i], LEVELS_MAX);
	for (size_t i = 0; rsb_gitsteps_files[i].name; i++)
		look_at(look, dir, rsb_gitsteps_files[i].name);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(more); i++)
		look_at_all(look, dir, more[i], level);
}

void
rsb_gitlook(const char *mountpoint, const char *name)
{
	struct look look = { .left = RSB_GITLOOK_MAX };
	rsb_autofree char *path = rsb_str_path(mountpoint, name);
	rsb_autofree char *git = path ? rsb_str_path(path, ".git") : NULL;
	rsb_autofree char *above = path ? strdup(path) : NULL;

	if (!git || !above)
		return;
	/* The repository that it may be of: its directory, or the one above that. */
	for (size_t i = 0; i < 2; i++) {
		char *slash = strrchr(above, '/');

		if (!slash || slash == above)
			break;
		*slash = '\0';
		look_at_marks(&look, above);
	}
	look_at(&look, mountpoint, name);
	if (!is_directory(path))
		return;
	look_at(&look, path, ".git");
	if (is_directory(git))
		look_at_repository(&look, git, 0);
	if (is_repository(path) || strstr(name, ".git/"))
		look_at_repository(&look, path, 0);
}
