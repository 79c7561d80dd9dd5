/* SPDX-License-Identifier: MIT */
#ifndef RSB_GUARDLOAD_H
#define RSB_GUARDLOAD_H

/*
 * Reads a file that the guard watches, whole and in one round trip, and has it judged. All under
 * the lock of fuse/fs.h.
 */

#include "fuse/fop.h"
#include "fuse/guard.h"

/*
 * fn gets 0 when inode is ready to be told of (fuse/guard.h), at once if it is, or the errno of a
 * link that failed. A file that cannot be read is judged as one without contents.
 */
void rsb_guard_then(struct rsb_fop *fop, struct rsb_inode *inode, rsb_fop_fn fn);
/* The same for when it is to be read. */
void rsb_guard_then_read(struct rsb_fop *fop, struct rsb_inode *inode, rsb_fop_fn fn);

#endif
