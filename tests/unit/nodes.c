/* SPDX-License-Identifier: MIT */
#include "tests/unit/nodes.h"

#include <sys/stat.h>

void
on_forget(void *arg, uint64_t id, uint64_t n)
{
	struct world *w = arg;

	w->forgot_id = id;
	w->forgot_n = n;
}

void
world_new(struct world *w)
{
	*w = (struct world){ .forgot_id = 0 };
	ck_assert_int_eq(rsb_shared_new(&w->shared, NULL), 0);
	ck_assert_int_eq(rsb_inodes_new(w->shared, on_forget, w, &w->inodes), 0);
}

void
world_free(struct world *w)
{
	rsb_inodes_free(w->inodes);
	rsb_shared_free(w->shared);
}

struct rsb_attr
file(uint64_t ino)
{
	return (struct rsb_attr){ .ino = ino, .mode = S_IFREG | 0644, .nlink = 1 };
}

struct rsb_inode *
given(struct world *w, uint64_t id, uint64_t ino)
{
	const struct rsb_attr attr = file(ino);
	struct rsb_inode *inode;

	ck_assert_int_eq(rsb_inode_given(w->inodes, id, &attr, &inode), 0);
	return inode;
}

struct rsb_inode *
given_dir(struct world *w, uint64_t id)
{
	const struct rsb_attr attr = { .ino = id + 100, .mode = S_IFDIR | 0755, .nlink = 2 };
	struct rsb_inode *inode;

	ck_assert_int_eq(rsb_inode_given(w->inodes, id, &attr, &inode), 0);
	return inode;
}
