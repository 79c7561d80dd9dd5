/* SPDX-License-Identifier: MIT */
#include "keeper/gitadopt.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/gitallow.h"
#include "keeper/gitconfig.h"
#include "keeper/gitcopy.h"
#include "keeper/gitsteps.h"
#include "util/fd.h"
#include "util/str.h"

#define LEVELS_MAX 32u /* directories between the root and a submodule's repository */

/* The text of a regular file, as it goes in. -ENOENT: there is no such. */
static int
read_text(int dir, const char *name, enum rsb_git_kind kind, struct rsb_buf *text)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf whole = { .max = RSB_GITALLOW_MAX };
	rsb_autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	bool cut;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	if (kind != RSB_GIT_CONFIG)
		return rsb_fd_read_all(fd, text);
	r = rsb_fd_read_all(fd, &whole);
	return r < 0 ? r : rsb_gitconfig_strip(rsb_buf_view(&whole), text, &cut);
}

/* A repository, or a directory of several. */
struct place {
	struct rsb_gitcopy *copies;
	int dir;
	const char *path; /* below what was synced in */
	size_t level;     /* directories that it is deep */
};

static int adopt_below(const struct place *place, const char *name);

/* One that cannot be read or is too long stays what it is: not trusted. */
static int
adopt(const struct place *git, const char *name, enum rsb_git_kind kind)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { .max = RSB_GITALLOW_MAX };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf view = { .max = RSB_GITALLOW_MAX };
	rsb_autofree char *path = rsb_str_path(git->path, name);
	struct rsb_gitallow what = {
		.kind = kind,
		.place = { .workspace = "", .mountpoint = "", .depth = git->level },
		.path = path,
	};
	char why[RSB_GITALLOW_WHY_MAX];
	int r;

	if (!path)
		return -ENOMEM;
	if (read_text(git->dir, name, kind, &text) < 0)
		return 0;
	what.text = rsb_buf_view(&text);
	r = rsb_gitallow_judge(&what, &view, why);
	return r == RSB_GITALLOW_HELD || r == RSB_GITALLOW_REFUSED
		       ? rsb_gitcopy_put(git->copies, path, what.text)
		       : rsb_min(r, 0);
}

static enum rsb_git_kind
kind_of_hook(struct rsb_bytes name)
{
	static const char sample[] = ".sample";
	const size_t n = strlen(sample);

	return name.size >= n && memcmp(name.data + name.size - n, sample, n) == 0 ? RSB_GIT_NONE
										   : RSB_GIT_HOOK;
}

static int
adopt_in(const struct place *git, const char *dir, enum rsb_git_kind (*kind_of)(struct rsb_bytes))
{
	int fd = openat(git->dir, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	rsb_autoclosedir DIR *all = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	while (all && r >= 0 && (entry = readdir(all))) {
		const enum rsb_git_kind kind = kind_of(rsb_bytes_str(entry->d_name));
		rsb_autofree char *name = NULL;

		if (entry->d_name[0] == '.' || kind == RSB_GIT_NONE)
			continue;
		name = rsb_str_path(dir, entry->d_name);
		r = name ? adopt(git, name, kind) : -ENOMEM;
	}
	return r;
}

/* Submodules have submodules again. */
static int
adopt_repository(const struct place *git)
{
	int r;

	r = adopt(git, "config", RSB_GIT_CONFIG);
	if (r >= 0)
		r = adopt(git, "config.worktree", RSB_GIT_CONFIG);
	if (r >= 0)
		r = adopt(git, "info/attributes", RSB_GIT_ATTRIBUTES);
	if (r >= 0)
		r = adopt(git, "objects/info/alternates", RSB_GIT_ALTERNATES);
	if (r >= 0)
		r = adopt_in(git, "hooks", kind_of_hook);
	for (size_t i = 0; r >= 0 && rsb_gitsteps_dirs[i]; i++)
		r = adopt_in(git, rsb_gitsteps_dirs[i], rsb_gitsteps_kind);
	for (size_t i = 0; r >= 0 && rsb_gitsteps_files[i].name; i++)
		r = adopt(git, rsb_gitsteps_files[i].name, rsb_gitsteps_files[i].kind);
	if (r >= 0)
		r = adopt_below(git, "modules");
	return r < 0 ? r : adopt_below(git, "worktrees");
}

/* A submodule's name may have slashes: what is no repository is a directory of some. */
static int
adopt_all(const struct place *place)
{
	int fd = openat(place->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rsb_autoclosedir DIR *all = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	while (all && r >= 0 && (entry = readdir(all))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = adopt_below(place, entry->d_name);
	}
	return r;
}

static int
adopt_below(const struct place *place, const char *name)
{
	rsb_autofree char *path = rsb_str_path(place->path, name);
	rsb_autoclose int dir =
		openat(place->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct place below = {
		.copies = place->copies,
		.dir = dir,
		.path = path,
		.level = place->level + 1,
	};

	if (!path)
		return -ENOMEM;
	if (dir < 0 || below.level > LEVELS_MAX)
		return 0;
	return faccessat(dir, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? adopt_repository(&below)
								      : adopt_all(&below);
}

int
rsb_gitadopt(const char *dir, const char *file)
{
	RSB_CLEANUP(rsb_gitcopy_freep) struct rsb_gitcopy *copies = NULL;
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf data = { .max = 2 * RSB_GITCOPY_BYTES_MAX };
	rsb_autofree char *path = rsb_str_path(dir, ".git");
	struct place top = { .path = ".git", .level = 1 };
	rsb_autoclose int git = -1;
	int r;

	if (!path)
		return -ENOMEM;
	git = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (git < 0)
		return 0;
	r = rsb_gitcopy_new(&copies);
	if (r < 0)
		return r;
	top.copies = copies;
	top.dir = git;
	r = adopt_repository(&top);
	if (r < 0 || !rsb_gitcopy_count(copies))
		return r;
	r = rsb_gitcopy_write(copies, &data);
	return r < 0 ? r : rsb_fd_replace_file(AT_FDCWD, file, rsb_buf_view(&data), 0600);
}
