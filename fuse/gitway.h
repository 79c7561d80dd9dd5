/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITWAY_H
#define RSB_GITWAY_H

/*
 * Where git is led to by what it reads: a .git file, commondir, a symbolic link called .git. What
 * is there is a repository (fuse/gitplace.h) before git has looked, and no symbolic link may be on
 * the way: redirected between two looks, it would lead to another place each time.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/inode.h"

/* Local programs are about to be given path, as seen from dir; or an absolute one, of theirs. */
void rsb_gitway_lead(const struct rsb_inode *dir, const char *mountpoint, struct rsb_bytes path);
/* A way leads over name in dir, or to it: no link may be there. */
bool rsb_gitway_is_over(const struct rsb_inode *dir, struct rsb_bytes name);
/* It is where one ends. */
bool rsb_gitway_ends_at(const struct rsb_inode *dir, struct rsb_bytes name);
/* The first, at any place where link was seen. */
bool rsb_gitway_is_over_link(const struct rsb_inode *link);

#endif
