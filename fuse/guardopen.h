/* SPDX-License-Identifier: MIT */
#ifndef RSB_GUARDOPEN_H
#define RSB_GUARDOPEN_H

/*
 * The views (fuse/guard.h) of open files. mmap(2) goes through the kernel's pages of the inode,
 * which all that have it open share, and a mapping keeps its file open. So all that are shown at
 * one time are of one text: pages of two, each harmless, could make a third that is not. Nor is
 * the size that stat(2) tells that of another, by which the one shown would be cut. As long as
 * somebody here has one text open, the file cannot be opened with another.
 *
 * All under the lock of fuse/fs.h.
 */

#include "fuse/fs.h"
#include "keeper/gitallow.h"

#define RSB_GUARDOPEN_MAX ((size_t)256 << 20) /* bytes of all; equal ones of a file count once */
/* Of that, only for those up to RSB_GITALLOW_MAX: a few indexes leave room for settings. */
#define RSB_GUARDOPEN_SMALL_MAX ((size_t)32 << 20)

struct rsb_guard_view;

/*
 * handle shows view, which is taken also on failure, or what it shows already. -EBUSY: another text
 * of the file is shown. -ENFILE over RSB_GUARDOPEN_MAX: others that are open have to be closed
 * first.
 */
rsb_nodiscard int rsb_guardopen_show(
	struct rsb_fs *fs, struct rsb_handle *handle, struct rsb_guard_view *view);
/* What of inode is shown; NULL: nothing, or nobody knows any more what. Borrowed. */
const struct rsb_guard_view *rsb_guardopen_shown(const struct rsb_inode *inode);
/* Who changes the file through handle, and is shown no view, may read it now. */
bool rsb_guardopen_may_read(const struct rsb_handle *handle);

#endif
