/* SPDX-License-Identifier: MIT */
#ifndef RSB_NAMES_H
#define RSB_NAMES_H

/*
 * Which name in which directory is which node, or is known to be absent. Only true while the
 * cache is on (fuse/cache.h): everything is dropped when it goes off. Mutations through the mount
 * keep it true. At RSB_NAMES_MAX the oldest entries give way.
 *
 * It also remembers which names the kernel was given to keep, since it can only be told one by one
 * that they count no more. These do not give way: when all are such, the kernel gets no others.
 *
 * All under the lock of fuse/fs.h.
 */

#include "fuse/inode.h"

#define RSB_NAMES_MAX 262144u

struct rsb_names;

rsb_nodiscard int rsb_names_new(size_t max, struct rsb_names **ret_names);
void rsb_names_free(struct rsb_names *names);
RSB_DEFINE_CLEANUP(struct rsb_names *, rsb_names_free)

/* 1: *ret_inode, borrowed; 0: absent for certain; -ENOENT: not known. */
rsb_nodiscard int rsb_names_get(const struct rsb_names *names, const struct rsb_inode *parent,
	struct rsb_bytes name, struct rsb_inode **ret_inode);
/* inode NULL: absent. What cannot be remembered is forgotten instead. */
void rsb_names_put(struct rsb_names *names, struct rsb_inode *parent, struct rsb_bytes name,
	struct rsb_inode *inode);
void rsb_names_drop(struct rsb_names *names, const struct rsb_inode *parent, struct rsb_bytes name);
void rsb_names_clear(struct rsb_names *names);

/* The kernel may keep this one. -ENOENT: it is not remembered, so the kernel must not. */
rsb_nodiscard int rsb_names_lend(struct rsb_names *names, const struct rsb_inode *parent,
	struct rsb_bytes name, uint64_t now_ns);
bool rsb_names_is_lent(
	const struct rsb_names *names, const struct rsb_inode *parent, struct rsb_bytes name);
/* The kernel was just given it without a lifetime. */
void rsb_names_take_back(
	struct rsb_names *names, const struct rsb_inode *parent, struct rsb_bytes name);
typedef void (*rsb_names_fn)(void *arg, uint64_t parent_nodeid, struct rsb_bytes name);
/* Calls fn for every name that is lent. Those lent after until_ns stay so, for the next time. */
void rsb_names_reclaim(struct rsb_names *names, uint64_t until_ns, rsb_names_fn fn, void *arg);
size_t rsb_names_count(const struct rsb_names *names);

#endif
