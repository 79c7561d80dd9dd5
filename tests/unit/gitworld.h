/* SPDX-License-Identifier: MIT */
#ifndef RSB_TEST_GITWORLD_H
#define RSB_TEST_GITWORLD_H

/* Inodes as they are seen by local programs, and what git could take them for. */

#include <sys/stat.h>

#include "fuse/gitplace.h"
#include "fuse/seen.h"
#include "tests/unit/unit.h"

struct world {
	struct rsb_shared *shared;
	struct rsb_inodes *inodes;
	uint64_t id;
};

static inline void
on_forget(void *arg, uint64_t id, uint64_t n)
{
	(void)arg;
	(void)id;
	(void)n;
}

static inline void
world_new(struct world *w)
{
	*w = (struct world){ .id = 1 };
	ck_assert_int_eq(rsb_shared_new(&w->shared, NULL), 0);
	ck_assert_int_eq(rsb_inodes_new(w->shared, on_forget, w, &w->inodes), 0);
}

static inline void
world_free(struct world *w)
{
	rsb_inodes_free(w->inodes);
	rsb_shared_free(w->shared);
}

/* A new inode, seen as name in dir (NULL: the root); it lives as long as the world. */
static inline struct rsb_inode *
seen(struct world *w, mode_t type, struct rsb_inode *dir, const char *name)
{
	const struct rsb_attr attr = { .ino = ++w->id, .mode = type | 0755, .nlink = 1 };
	struct rsb_inode *inode;

	ck_assert_int_eq(rsb_inode_given(w->inodes, w->id, &attr, &inode), 0);
	rsb_seen_hint(inode, dir ? dir : rsb_inode_root(w->inodes), rsb_bytes_str(name));
	return inode;
}

/* The kind of the first place, and its path. */
static inline enum rsb_git_kind
kind(const struct rsb_inode *inode, const char *want_path)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf path = { 0 };
	struct rsb_gitplace place;
	size_t cursor = 0;

	if (!rsb_gitplace_next(inode, &cursor, &place))
		return RSB_GIT_NONE;
	if (want_path) {
		ck_assert_int_eq(rsb_seen_path(place.dir, place.name, &path), 0);
		ck_assert_str_eq((const char *)rsb_buf_head(&path), want_path);
	}
	return place.kind;
}

#endif
