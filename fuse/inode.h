/* SPDX-License-Identifier: MIT */
#ifndef RSB_INODE_H
#define RSB_INODE_H

/*
 * Nodes that the kernel or we know: one for each inode of the sandbox, by the id under which the
 * sidecar knows it. What the kernel calls it (nodeid) is its index in the shared table and the
 * generation of that slot, so a nodeid never comes back for another file. A file that was deleted
 * and made again under the same inode number comes with another id and is another node.
 *
 * A node lives while the kernel has not forgotten all look-ups of it or somebody here holds a
 * reference (names, open files, requests under way). When it goes, the sidecar is told how often
 * it had given it out.
 *
 * All under the lock of fuse/fs.h.
 */

#include <stdbool.h>

#include "fuse/shared.h"
#include "proto/op.h"
#include "util/list.h"
#include "util/map.h"

struct rsb_aliases;
struct rsb_gitplaces;
struct rsb_guard_file;
struct rsb_handle;
struct rsb_inodes;
struct rsb_wrote;

struct rsb_inode {
	uint64_t nodeid;        /* const; the kernel's name: generation << 32 | index */
	uint64_t id;            /* const; the sidecar's name */
	uint64_t epoch;         /* const; of the sidecar that gave it; another one is ESTALE */
	bool left;              /* another node is what it was, rsb_inode_replace() */
	struct rsb_node wire;   /* const; how requests name it */
	struct rsb_inodes *set; /* const */
	size_t n_ref;

	struct rsb_attr attr; /* the latest; may be used while attr_gen is the cache's */
	uint64_t attr_gen;    /* generation of fuse/cache.h in which attr counts; 0: never */
	uint64_t kernel_gen;  /* in which the kernel was given attributes to keep */
	uint64_t pages_gen;   /* in which the kernel's pages agree with attr */
	uint64_t listed_gen;  /* directory: in which all its names are known */

	uint64_t changed;        /* the clock of fuse/fs.h when a mutation of it was sent last */
	size_t n_mutating;       /* sent and not answered */
	size_t n_open;           /* handles of it */
	size_t n_writer;         /* those that may write */
	struct rsb_list handles; /* of struct rsb_handle.of_inode */
	struct rsb_list locks;   /* of fuse/lockset.h: ranges */
	size_t n_range;
	struct rsb_handle *dirty; /* the one that has unsent data, if any: there is at most one */

	char *target;          /* symlink: as the sandbox has it; NULL: not read yet */
	bool refused;          /* symlink: that it leads out was logged */
	struct rsb_inode *dir; /* of fuse/seen.h: a reference; NULL: none */
	uint64_t parent; /* nodeid and name under which it was seen last; hints, for link targets */
	const char *name;     /* of fuse/namestore.h; NULL: none in the life of this process */
	uint32_t first_alias; /* of fuse/alias.h; 0: none */
	uint32_t depth_least; /* the least rsb_seen_depth() that any of its hints stood for */
	uint64_t dir_names;   /* directory: bits of what directories in it were called */

	uint32_t git_seen;                /* of fuse/gitplace.h, as the next */
	struct rsb_gitplaces *git_places; /* hints before this one; NULL: none that matter */
	struct rsb_guard_file *guard;     /* of fuse/guard.h; NULL: nothing is known */
	struct rsb_wrote *wrote;          /* of fuse/wrote.h; NULL: not known */
};

/* forget: the sidecar must be told that n of its gifts are returned. */
typedef void (*rsb_inode_forget_fn)(void *arg, uint64_t id, uint64_t n);

/*
 * Borrows shared. The root is there from the start, and so is what the process of before knew:
 * without attributes, but for the type.
 */
rsb_nodiscard int rsb_inodes_new(struct rsb_shared *shared, rsb_inode_forget_fn forget, void *arg,
	struct rsb_inodes **ret_inodes);
void rsb_inodes_free(struct rsb_inodes *inodes);
RSB_DEFINE_CLEANUP(struct rsb_inodes *, rsb_inodes_free)

/* NULL: none such. Borrowed. */
struct rsb_inode *rsb_inode_by_nodeid(const struct rsb_inodes *inodes, uint64_t nodeid);
struct rsb_inode *rsb_inode_by_id(const struct rsb_inodes *inodes, uint64_t id);
struct rsb_inode *rsb_inode_root(const struct rsb_inodes *inodes);
struct rsb_aliases *rsb_inodes_aliases(const struct rsb_inodes *inodes);
struct rsb_namestore *rsb_inodes_names(const struct rsb_inodes *inodes);
struct rsb_shared *rsb_inodes_shared(const struct rsb_inodes *inodes);
/* What the next process will know of it. */
struct rsb_shared_node *rsb_inode_shared(const struct rsb_inode *inode);
size_t rsb_inodes_count(const struct rsb_inodes *inodes);
/* Walks all; *cursor starts at 0, NULL at the end. No node may come or go meanwhile. */
struct rsb_inode *rsb_inode_next(const struct rsb_inodes *inodes, size_t *cursor);

/*
 * The sidecar gave out id with attr: finds or makes the node, counts the gift, and returns it with
 * a reference that the caller owns. -ESTALE: it is known as another file, or id is not one of
 * ours; -ENFILE, -ENOMEM: the gift is returned.
 */
rsb_nodiscard int rsb_inode_given(struct rsb_inodes *inodes, uint64_t id,
	const struct rsb_attr *attr, struct rsb_inode **ret_inode);
/*
 * The reply of a call is taken from now on, of whose gifts *n_counted were counted by a process
 * that died meanwhile; counts the others there. NULL: it was taken.
 */
void rsb_inodes_take_gifts(struct rsb_inodes *inodes, uint64_t *n_counted);
/* After the recovery: what nobody holds goes. */
void rsb_inodes_sweep(struct rsb_inodes *inodes);
/* The sidecar is another one: all nodes but the root are void from now on. */
void rsb_inodes_set_epoch(struct rsb_inodes *inodes, uint64_t epoch);
/* 0, or -ESTALE for a node of an earlier sidecar. */
rsb_nodiscard int rsb_inode_check(const struct rsb_inode *inode);

/* How often the sidecar has given it out, as far as it was counted. */
uint64_t rsb_inode_given_count(const struct rsb_inode *inode);

struct rsb_inode *rsb_inode_ref(struct rsb_inode *inode);
void rsb_inode_unref(struct rsb_inode *inode); /* NULL is fine */

/*
 * Another node in place of *inode, whose reference becomes one of that: what is asked of the old
 * one is ESTALE from now on. -ENFILE, -ENOMEM.
 */
rsb_nodiscard int rsb_inode_replace(struct rsb_inode **inode);

/* The kernel was told of it once more; it forgot n of these. */
void rsb_inode_looked_up(struct rsb_inode *inode);
void rsb_inode_forget(struct rsb_inode *inode, uint64_t n);

/* These bits of git_seen are set to its end. */
void rsb_inode_note_git(struct rsb_inode *inode, uint32_t seen);

#endif
