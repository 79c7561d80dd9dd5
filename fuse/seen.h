/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_SEEN_H
#define RSB_FUSE_SEEN_H

/*
 * Where a node was seen last: hints, for the targets of links, for git's places, and for finding
 * again what is open. A node keeps the directory in which it was seen, and so on up, also when the
 * kernel has long forgotten these.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/inode.h"

#define RSB_SEEN_DEPTH_MAX 4096u /* more than PATH_MAX can name: the hints make a circle */

/* Where it was seen last, also by a process that died. NULL: not known, or not any more. */
const char *rsb_seen_last(const struct rsb_inode *inode, struct rsb_inode **ret_parent);
/* Where it was seen. */
void rsb_seen_hint(struct rsb_inode *inode, struct rsb_inode *parent, struct rsb_bytes name);
/* A directory that was seen last as another than name in parent, perhaps by a process that died. */
bool rsb_seen_elsewhere(
	const struct rsb_inode *inode, const struct rsb_inode *parent, struct rsb_bytes name);
bool rsb_seen_is(
	const struct rsb_inode *inode, const struct rsb_inode *parent, struct rsb_bytes name);
/* A local program linked it there. */
void rsb_seen_linked(struct rsb_inode *inode, struct rsb_inode *parent, struct rsb_bytes name);
/* A local program renamed name in parent; nothing is noted if inode was seen elsewhere. */
void rsb_seen_moved(struct rsb_inode *inode, const struct rsb_inode *parent, struct rsb_bytes name,
	struct rsb_inode *newparent, struct rsb_bytes newname);
/* A rename of what nobody looked up: whatever was seen as name in parent lies there now. */
void rsb_seen_moved_all(struct rsb_inodes *inodes, const struct rsb_inode *parent,
	struct rsb_bytes name, struct rsb_inode *newparent, struct rsb_bytes newname, bool is_dir);
/* false: no directory was ever seen as name in parent, whatever the sidecar says it is. */
bool rsb_seen_has_dir(const struct rsb_inode *parent, struct rsb_bytes name);
/*
 * How many directories below the root its parent is, by the hints: 0 for what lies in the root.
 * An inode with several names, or one that was moved, counts as where it lay least deep, and so
 * does all that is below it: readlink does not say by which of its names the kernel came.
 * -ENOENT: not known.
 */
rsb_nodiscard int rsb_seen_depth(const struct rsb_inode *inode);

/* The path of name in dir below the root, appended. -ENOENT: not known; -ENOMEM, -EMSGSIZE. */
rsb_nodiscard int rsb_seen_path(const struct rsb_inode *dir, const char *name, struct rsb_buf *out);

/*
 * *inode, with a reference of the caller's, was found as name in dir, and the kernel is to be told.
 * A directory that the sandbox has moved there becomes another node: the kernel has one place for
 * each, would move it, and take a walk that is in it along, which ".." of a link then leads out of
 * the mount. -ENFILE, -ENOMEM.
 */
rsb_nodiscard int rsb_seen_settle(
	struct rsb_inode **inode, struct rsb_inode *dir, struct rsb_bytes name);
/* The process of before saw it; when all its nodes are there. */
void rsb_seen_restore(struct rsb_inode *inode);
/* inode goes. The directory with one reference less, which the caller collects; NULL: none. */
struct rsb_inode *rsb_seen_leave(struct rsb_inode *inode);

#endif
