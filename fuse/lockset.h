/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_LOCKSET_H
#define RSB_FUSE_LOCKSET_H

/*
 * Which open files hold locks now, as their answers told: when the sidecar loses them nobody else
 * knows. POSIX and OFD locks are ranges of an owner, of the open file by which they were had; a
 * flock is of an open file. Where it is not known exactly (after a crash of the daemon, over
 * RSB_LOCKSET_MAX ranges of a file, without memory) a file counts as holding some for longer.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/handle.h"

#define RSB_LOCKSET_MAX 1024u /* ranges of one node */

/* Granted, or given up. */
void rsb_lockset_note(struct rsb_handle *handle, const struct rsb_lock_req *req);
/* All of owner on the node of handle, as unlock_all. */
void rsb_lockset_drop_owner(struct rsb_handle *handle, uint64_t owner);
/* It goes. */
void rsb_lockset_drop_handle(struct rsb_handle *handle);
bool rsb_lockset_holds(const struct rsb_handle *handle);
/* That a process that died had it hold some. */
void rsb_lockset_restore(struct rsb_handle *handle);

#endif
