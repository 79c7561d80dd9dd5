/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITPLACES_H
#define RSB_GITPLACES_H

/* Where an inode was seen, as far as fuse/gitplace.h wants it kept. Under the lock of fuse/fs.h. */

#include "fuse/inode.h"

#define RSB_GITPLACES_MAX 4u

/* Where it was seen before. */
struct rsb_gitplaces {
	size_t n;
	struct {
		uint64_t parent;
		char *name;
	} items[RSB_GITPLACES_MAX];
};

/* Number i; the hint is number 0. Borrowed; NULL: not known. false: there is no such number. */
bool rsb_gitplaces_at(const struct rsb_inode *inode, size_t i, const struct rsb_inode **ret_dir,
	const char **ret_name);
/* The hint of inode, which has one, is one of those from now on. false: there is no room. */
rsb_nodiscard bool rsb_gitplaces_keep(struct rsb_inode *inode);
void rsb_gitplaces_free(struct rsb_gitplaces *places); /* NULL is fine */

#endif
