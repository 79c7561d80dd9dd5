/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_ALIAS_H
#define RSB_FUSE_ALIAS_H

/*
 * Names of files that have, or had, several, beside the one under which each was seen last: what is
 * open has to be found again by any of them. Hints: whoever uses one looks whether it is true.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/inode.h"

#define RSB_ALIASES_MAX 8u

struct rsb_aliases;

/* inode is about to be hinted at another place than the one of now. */
void rsb_alias_keep(struct rsb_inode *inode);
/* It is not called name in dir any more. If it was seen there last, another place counts. */
void rsb_alias_lose(struct rsb_inode *inode, const struct rsb_inode *dir, struct rsb_bytes name);
/* Number i, from 0 up. NULL: there is none. */
const char *rsb_alias_get(const struct rsb_inode *inode, size_t i, struct rsb_inode **ret_parent);
void rsb_aliases_free(struct rsb_aliases *aliases); /* NULL is fine */

#endif
