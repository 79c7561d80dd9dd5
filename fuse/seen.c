/* SPDX-License-Identifier: MIT */
#include "fuse/seen.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "fuse/alias.h"
#include "fuse/gitplace.h"
#include "fuse/namestore.h"
#include "util/mix.h"
#include "util/str.h"

#define ROOT_NODEID 1u
#define PATH_DEPTH_MAX 2048u /* names of one byte in RSB_PATH_MAX */

bool
rsb_seen_is(const struct rsb_inode *inode, const struct rsb_inode *parent, struct rsb_bytes name)
{
	return inode->name && inode->parent == parent->nodeid && strlen(inode->name) == name.size &&
	       memcmp(inode->name, name.data, name.size) == 0;
}

bool
rsb_seen_elsewhere(
	const struct rsb_inode *inode, const struct rsb_inode *parent, struct rsb_bytes name)
{
	const struct rsb_shared_node *shared = rsb_inode_shared(inode);
	const char *last = rsb_namestore_get(rsb_inodes_names(inode->set), shared->name);

	return S_ISDIR(inode->attr.mode) && last &&
	       (shared->parent != parent->nodeid || !rsb_str_is(name, last));
}

static void
note_depth(struct rsb_inode *inode)
{
	int depth = rsb_seen_depth(inode);

	if (depth < 0)
		return;
	inode->depth_least = rsb_min(inode->depth_least, (uint32_t)depth);
	rsb_inode_shared(inode)->depth_least = inode->depth_least;
}

/* Under its parent's node of now, where that was replaced. */
const char *
rsb_seen_last(const struct rsb_inode *inode, struct rsb_inode **ret_parent)
{
	const struct rsb_shared_node *shared = rsb_inode_shared(inode);
	struct rsb_inode *parent = rsb_inode_by_nodeid(inode->set, shared->parent);

	if (parent && parent->left)
		parent = rsb_inode_by_id(inode->set, parent->id);
	*ret_parent = parent;
	return parent ? rsb_namestore_get(rsb_inodes_names(inode->set), shared->name) : NULL;
}

/* ---- directories ---- */

struct rsb_inode *
rsb_seen_leave(struct rsb_inode *inode)
{
	struct rsb_inode *dir = rsb_steal(&inode->dir);

	if (dir)
		dir->n_ref--;
	return dir;
}

/* There is no circle so far: the way up ends. */
static void
open_circle(struct rsb_inode *inode, struct rsb_inode *dir)
{
	while (dir && dir->dir != inode)
		dir = dir->dir;
	/* It is at hand: whoever has it there returns it. */
	if (dir)
		(void)rsb_seen_leave(dir);
}

static void
keep_dir(struct rsb_inode *inode, struct rsb_inode *dir)
{
	struct rsb_inode *old = inode->dir;

	if (old == dir || inode == dir)
		return;
	open_circle(inode, dir);
	inode->dir = rsb_inode_ref(dir);
	rsb_inode_unref(old);
}

void
rsb_seen_restore(struct rsb_inode *inode)
{
	struct rsb_inode *dir = rsb_inode_by_nodeid(inode->set, inode->parent);

	if (dir)
		keep_dir(inode, dir);
}

/* ---- places ---- */

/* In rsb_inode.dir_names: four, so that few directories do not hide many files. */
static uint64_t
bits_of(struct rsb_bytes name)
{
	const uint64_t hash = rsb_mix_u64(rsb_mix_bytes(RSB_MIX_BASIS, name));

	return UINT64_C(1) << (hash & 63) | UINT64_C(1) << (hash >> 6 & 63) |
	       UINT64_C(1) << (hash >> 12 & 63) | UINT64_C(1) << (hash >> 18 & 63);
}

/* For the next process, and the next sidecar. -ENOSPC: nothing has changed. */
static int
note_seen(struct rsb_inode *inode, struct rsb_inode *parent, struct rsb_bytes name)
{
	struct rsb_namestore *names = rsb_inodes_names(inode->set);
	struct rsb_shared_node *shared = rsb_inode_shared(inode);
	uint64_t old = shared->name;
	uint64_t word;
	int r;

	if (S_ISDIR(inode->attr.mode))
		parent->dir_names |= bits_of(name);
	r = rsb_namestore_put(names, name, &word);
	if (r < 0)
		return r;
	/* Never one's name with the other's parent. */
	rsb_shared_publish(&shared->name, 0);
	rsb_shared_publish(&shared->parent, parent->nodeid);
	rsb_shared_publish(&shared->name, word);
	rsb_namestore_drop(names, old);
	keep_dir(inode, parent);
	return 0;
}

void
rsb_seen_hint(struct rsb_inode *inode, struct rsb_inode *parent, struct rsb_bytes name)
{
	if (rsb_seen_is(inode, parent, name))
		return;
	rsb_gitplace_stray(inode, parent, name);
	rsb_seen_linked(inode, parent, name);
}

void
rsb_seen_linked(struct rsb_inode *inode, struct rsb_inode *parent, struct rsb_bytes name)
{
	if (rsb_seen_is(inode, parent, name))
		return;
	rsb_gitplace_seen(inode, parent, name);
	rsb_gitplace_keep(inode);
	rsb_alias_keep(inode, parent, name);
	/* The kernel may still walk by the old name: where that lay counts too. */
	if (inode->parent)
		note_depth(inode);
	if (note_seen(inode, parent, name) < 0) {
		inode->depth_least = rsb_inode_shared(inode)->depth_least = 0;
		rsb_gitplace_lose(inode);
		return;
	}
	inode->name =
		rsb_namestore_get(rsb_inodes_names(inode->set), rsb_inode_shared(inode)->name);
	inode->parent = parent->nodeid;
	note_depth(inode);
}

void
rsb_seen_moved(struct rsb_inode *inode, const struct rsb_inode *parent, struct rsb_bytes name,
	struct rsb_inode *newparent, struct rsb_bytes newname)
{
	struct rsb_inode *dir;
	const char *seen;

	if (rsb_seen_is(inode, parent, name)) {
		rsb_seen_linked(inode, newparent, newname);
		return;
	}
	seen = inode->name ? NULL : rsb_seen_last(inode, &dir);
	/* Of a process that died: a hint is only what this one has seen. */
	if (seen && dir == parent && strlen(seen) == name.size &&
		memcmp(seen, name.data, name.size) == 0)
		(void)note_seen(inode, newparent, newname);
}

void
rsb_seen_moved_all(struct rsb_inodes *inodes, const struct rsb_inode *parent, struct rsb_bytes name,
	struct rsb_inode *newparent, struct rsb_bytes newname, bool is_dir)
{
	struct rsb_inode *inode;
	size_t cursor = 0;

	/* A file that stays in its directory lies as deep as before. */
	if (parent == newparent && !is_dir && !rsb_gitplace_could_be(newparent, newname))
		return;
	while ((inode = rsb_inode_next(inodes, &cursor)))
		rsb_seen_moved(inode, parent, name, newparent, newname);
}

bool
rsb_seen_has_dir(const struct rsb_inode *parent, struct rsb_bytes name)
{
	return !(bits_of(name) & ~parent->dir_names);
}

int
rsb_seen_depth(const struct rsb_inode *inode)
{
	const struct rsb_inodes *set = inode->set;
	uint32_t least = inode->depth_least;
	uint32_t depth = 0;

	while (inode->parent != ROOT_NODEID) {
		inode = rsb_inode_by_nodeid(set, inode->parent);
		if (!inode || !inode->parent || ++depth > RSB_SEEN_DEPTH_MAX)
			return -ENOENT;
		least = rsb_min(least, depth + inode->depth_least);
	}
	return (int)rsb_min(least, depth);
}

int
rsb_seen_settle(struct rsb_inode **inode, struct rsb_inode *dir, struct rsb_bytes name)
{
	if (!rsb_inode_shared(*inode)->n_kernel || !rsb_seen_elsewhere(*inode, dir, name))
		return 0;
	return rsb_inode_replace(inode);
}

int
rsb_seen_path(const struct rsb_inode *dir, const char *name, struct rsb_buf *out)
{
	const struct rsb_inode *root = rsb_inode_root(dir->set);
	const struct rsb_inode *chain[PATH_DEPTH_MAX];
	size_t n = 0;
	int r = 0;

	for (; dir != root; dir = rsb_inode_by_nodeid(root->set, dir->parent)) {
		if (!dir || !dir->name || n == PATH_DEPTH_MAX)
			return -ENOENT;
		chain[n++] = dir;
	}
	while (n-- && r >= 0)
		r = rsb_buf_printf(out, "%s/", chain[n]->name);
	return r < 0 ? r : rsb_buf_append(out, name, strlen(name) + 1);
}
