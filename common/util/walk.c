/* SPDX-License-Identifier: MIT */
#include "util/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/str.h"

struct walk {
	int root_fd;
	dev_t dev;
	const struct rsb_ignore *ignore;
	int (*fn)(void *arg, const struct rsb_walk_entry *entry);
	void *arg;
	struct rsb_walk_entry entry;
	char path[RSB_WALK_PATH_MAX + 1];
	char target[RSB_WALK_PATH_MAX + 1];
};

struct name {
	char *text;
	struct stat st;
};

/* The contents of one directory, so that none is open while those below it are walked. */
struct listing {
	struct name *names;
	size_t n;
	size_t cap;
};

static void
listing_done(struct listing *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->names[i].text);
	free(list->names);
}

static int
listing_add(struct listing *list, const char *text, const struct stat *st)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 32;
		struct name *names = reallocarray(list->names, cap, sizeof(*names));

		if (!names)
			return -ENOMEM;
		list->names = names;
		list->cap = cap;
	}
	if (list->n == RSB_WALK_DIR_MAX)
		return -EOVERFLOW;
	list->names[list->n] = (struct name){ .text = strdup(text), .st = *st };
	return list->names[list->n++].text ? 0 : -ENOMEM;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static int
list_dir(const struct walk *walk, const char *path, struct listing *list)
{
	int fd = rsb_beneath_open(walk->root_fd, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	rsb_autoclosedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct stat st;
	int r = 0;

	if (!dir)
		return fd < 0 ? fd : -errno;
	while (r == 0) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			break;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			r = listing_add(list, entry->d_name, &st);
		else if (errno != ENOENT)
			r = -errno;
	}
	if (r == 0 && errno)
		r = -errno;
	if (list->n)
		qsort(list->names, list->n, sizeof(*list->names), by_name);
	return r;
}

/* It went, or is something else now: as if it had been empty. */
static bool
is_gone(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

static int walk_list(struct walk *walk, struct listing *list, size_t parent);

static int
walk_dir(struct walk *walk, size_t size)
{
	RSB_CLEANUP(listing_done) struct listing list = { 0 };
	int r = walk->entry.st.st_dev == walk->dev ? list_dir(walk, walk->path, &list) : -EXDEV;

	if (r == -ENOMEM)
		return r;
	if (r < 0 && !is_gone(r))
		walk->entry.error = r;
	r = walk->fn(walk->arg, &walk->entry);
	return r == 0 && walk->entry.error == 0 ? walk_list(walk, &list, size) : r;
}

static int
read_target(struct walk *walk)
{
	const char *name;
	rsb_autoclose int dir = rsb_beneath_parent(walk->root_fd, walk->path, &name);
	ssize_t n = dir < 0 ? -1 : readlinkat(dir, name, walk->target, sizeof(walk->target) - 1);

	walk->target[n < 0 ? 0 : n] = '\0';
	return n <= 0 ? -ENOENT : 0;
}

static int
walk_one(struct walk *walk, const struct name *name, size_t size)
{
	const bool is_dir = S_ISDIR(name->st.st_mode);

	if (walk->ignore && rsb_ignore_match(walk->ignore, walk->path, is_dir))
		return 0;
	walk->entry = (struct rsb_walk_entry){ .path = walk->path, .st = name->st, .target = "" };
	if (is_dir)
		return walk_dir(walk, size);
	if (S_ISLNK(name->st.st_mode)) {
		if (read_target(walk) < 0)
			return 0;
		walk->entry.target = walk->target;
	}
	return walk->fn(walk->arg, &walk->entry);
}

/* The path has room for parent bytes and the names below; what is too deep cannot be named. */
static int
walk_list(struct walk *walk, struct listing *list, size_t parent)
{
	int r = 0;

	for (size_t i = 0; i < list->n && r == 0; i++) {
		const size_t at = parent ? parent + 1 : 0;
		const size_t size = strlen(list->names[i].text);

		if (at + size > RSB_WALK_PATH_MAX)
			return -ENAMETOOLONG;
		if (parent)
			walk->path[parent] = '/';
		memcpy(walk->path + at, list->names[i].text, size + 1);
		r = walk_one(walk, &list->names[i], at + size);
	}
	walk->path[parent] = '\0';
	return r;
}

int
rsb_walk(int root_fd, const struct rsb_ignore *ignore,
	int (*fn)(void *arg, const struct rsb_walk_entry *entry), void *arg)
{
	RSB_CLEANUP(listing_done) struct listing list = { 0 };
	rsb_autofree struct walk *walk = rsb_new(struct walk);
	struct stat st;
	int r;

	if (!walk)
		return -ENOMEM;
	if (fstat(root_fd, &st) < 0)
		return -errno;
	walk->root_fd = root_fd;
	walk->dev = st.st_dev;
	walk->ignore = ignore;
	walk->fn = fn;
	walk->arg = arg;
	r = list_dir(walk, "", &list);
	return r < 0 ? r : walk_list(walk, &list, 0);
}

static int
rank(char c)
{
	if (c == '/')
		return 1;
	return c ? 1 + (unsigned char)c : 0;
}

int
rsb_walk_compare(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	/* A slash is before every other byte: what is in a directory follows it at once. */
	return rank(*a) - rank(*b);
}
