/* SPDX-License-Identifier: MIT */
#include "keeper/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "keeper/gitindex.h"
#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/str.h"
#include "util/walk.h"

#define SECONDS_MAX ((int64_t)1 << 33)
#define MODE_MASK (S_IFMT | 01777)
/* A tick of the coarsest clock that file systems take their times from, twice. */
#define YOUNG_NS (20 * (int64_t)RSB_NSEC_PER_MSEC)

void
rsb_tree_done(struct rsb_tree *tree)
{
	for (size_t i = 0; i < tree->n; i++) {
		free(tree->leaves[i].path);
		free(tree->leaves[i].target);
	}
	free(tree->leaves);
	*tree = (struct rsb_tree){ 0 };
}

static int
grow(struct rsb_tree *tree)
{
	size_t cap = tree->cap ? 2 * tree->cap : 256;
	struct rsb_tree_leaf *leaves;

	if (tree->n < tree->cap)
		return 0;
	leaves = reallocarray(tree->leaves, cap, sizeof(*leaves));
	if (!leaves)
		return -ENOMEM;
	tree->leaves = leaves;
	tree->cap = cap;
	return 0;
}

int
rsb_tree_add(struct rsb_tree *tree, const struct rsb_tree_leaf *leaf)
{
	const char *target = leaf->target ? leaf->target : "";
	rsb_autofree char *path = NULL;
	size_t size = strlen(leaf->path) + strlen(target);
	struct rsb_tree_leaf *to;
	int r;

	if (tree->n && rsb_walk_compare(tree->leaves[tree->n - 1].path, leaf->path) >= 0)
		return -EBADMSG;
	if (tree->n == RSB_TREE_LEAVES_MAX || size > RSB_TREE_TEXT_MAX - tree->text)
		return -ENOSPC;
	r = grow(tree);
	path = strdup(leaf->path);
	if (r < 0 || !path)
		return -ENOMEM;
	to = &tree->leaves[tree->n];
	*to = *leaf;
	to->target = strdup(target);
	if (!to->target)
		return -ENOMEM;
	to->path = rsb_steal(&path);
	tree->text += size;
	tree->n++;
	return 0;
}

struct rsb_tree_leaf *
rsb_tree_find(const struct rsb_tree *tree, const char *path)
{
	size_t low = 0;
	size_t high = tree->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = rsb_walk_compare(tree->leaves[mid].path, path);

		if (order == 0)
			return &tree->leaves[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

void
rsb_tree_drop(struct rsb_tree *tree, const char *path)
{
	struct rsb_tree_leaf *leaf = rsb_tree_find(tree, path);
	const struct rsb_tree_leaf *end = tree->leaves + tree->n;
	size_t n = 0;

	if (!leaf)
		return;
	do {
		free(leaf[n].path);
		free(leaf[n].target);
		n++;
	} while (leaf + n < end && rsb_str_is_below(leaf[n].path, path));
	memmove(leaf, leaf + n, (size_t)(end - leaf - (ptrdiff_t)n) * sizeof(*leaf));
	tree->n -= n;
}

bool
rsb_tree_leaf_is(const struct rsb_tree_leaf *leaf, uint32_t type)
{
	return leaf && (leaf->mode & S_IFMT) == type;
}

struct walk {
	struct rsb_tree *tree;
	int64_t young_ns;
};

int64_t
rsb_tree_ns(int64_t sec, int64_t nsec)
{
	sec = rsb_max(rsb_min(sec, SECONDS_MAX), -SECONDS_MAX);
	nsec = rsb_max(rsb_min(nsec, (int64_t)RSB_NSEC_PER_SEC - 1), (int64_t)0);
	return sec * (int64_t)RSB_NSEC_PER_SEC + nsec;
}

static int64_t
to_ns(const struct timespec *ts)
{
	return rsb_tree_ns(ts->tv_sec, ts->tv_nsec);
}

static int
take(void *arg, const struct rsb_walk_entry *entry)
{
	struct walk *walk = arg;
	const int64_t mtime_ns = to_ns(&entry->st.st_mtim);
	const int64_t ctime_ns = to_ns(&entry->st.st_ctim);
	const struct rsb_tree_leaf leaf = {
		.path = (char *)entry->path,
		.target = (char *)entry->target,
		.mode = entry->st.st_mode & MODE_MASK,
		.size = S_ISREG(entry->st.st_mode) ? (uint64_t)entry->st.st_size : 0,
		.blind = entry->error < 0,
		.here = { .mtime_ns = mtime_ns,
			.ctime_ns = rsb_min(ctime_ns, mtime_ns) < walk->young_ns ? ctime_ns : 0,
			.ino = entry->st.st_ino },
	};

	return rsb_tree_add(walk->tree, &leaf);
}

int
rsb_tree_walk(struct rsb_tree *tree, int root_fd, const struct rsb_ignore *ignore)
{
	struct walk walk = { .tree = tree };
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	walk.young_ns = to_ns(&now) - YOUNG_NS;
	return rsb_walk(root_fd, ignore, take, &walk);
}

int
rsb_tree_hash(int root_fd, struct rsb_tree_leaf *leaf)
{
	rsb_autoclose int fd = rsb_beneath_open(root_fd, leaf->path, O_RDONLY | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	r = rsb_gitindex_is(leaf->path) ? rsb_gitindex_hash_fd(fd, leaf->sha) : -EBADMSG;
	if (r == -EBADMSG)
		r = rsb_sha256_fd(fd, leaf->sha);
	if (r >= 0)
		leaf->hashed = true;
	return r;
}

bool
rsb_stamp_is_same(const struct rsb_stamp *a, const struct rsb_stamp *b)
{
	return a->ctime_ns && a->ctime_ns == b->ctime_ns && a->mtime_ns == b->mtime_ns &&
	       a->ino == b->ino;
}

bool
rsb_tree_is_same(const struct rsb_tree_leaf *a, const struct rsb_tree_leaf *b)
{
	if ((a->mode & S_IFMT) != (b->mode & S_IFMT))
		return false;
	if (S_ISLNK(a->mode))
		return strcmp(a->target, b->target) == 0;
	if (a->mode != b->mode)
		return false;
	return !S_ISREG(a->mode) ||
	       (a->hashed && b->hashed && memcmp(a->sha, b->sha, sizeof(a->sha)) == 0);
}
