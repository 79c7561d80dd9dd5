/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_ALIAS_H
#define RSB_FUSE_ALIAS_H

/*
 * Names of files that have, or had, several, beside the one under which each was seen last: what is
 * open has to be found again by any of them, by a later process too, so they are in the shared
 * mapping. Hints: whoever uses one looks whether it is true.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/inode.h"
#include "fuse/namestore.h"

#define RSB_ALIASES_MAX 8u /* of one node; RSB_SHARED_ALIASES_MAX of all */

struct rsb_aliases;

/* Borrows both. */
rsb_nodiscard int rsb_aliases_new(
	struct rsb_shared *shared, struct rsb_namestore *names, struct rsb_aliases **ret_aliases);
/* Those that the process of before knew, when its nodes are there. */
void rsb_aliases_restore(struct rsb_aliases *aliases, const struct rsb_inodes *inodes);
void rsb_aliases_free(struct rsb_aliases *aliases); /* NULL is fine */

/* inode is about to be seen as name in parent, and not where it was seen last. */
void rsb_alias_keep(struct rsb_inode *inode, const struct rsb_inode *parent, struct rsb_bytes name);
/* It is not called name in dir any more. If it was seen there last, another place counts. */
void rsb_alias_lose(struct rsb_inode *inode, const struct rsb_inode *dir, struct rsb_bytes name);
/* It goes. */
void rsb_alias_lose_all(struct rsb_inode *inode);
/* Number i, from 0 up, the latest first. NULL: there is none. *ret_parent NULL: that has gone. */
const char *rsb_alias_get(const struct rsb_inode *inode, size_t i, struct rsb_inode **ret_parent);

#endif
