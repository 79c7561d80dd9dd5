/* SPDX-License-Identifier: MIT */
#ifndef RSB_NOTIFY_H
#define RSB_NOTIFY_H

/*
 * The daemon's end of the notifier (fuse/notifier.h). Orders are carried out one after the other;
 * done() comes on the loop's thread when the order is finished. Posting is for any thread.
 */

#include "util/cleanup.h"
#include "util/loop.h"

struct rsb_notify;

/* Takes sock. */
rsb_nodiscard int rsb_notify_new(struct rsb_loop *loop, int sock, struct rsb_notify **ret_notify);
void rsb_notify_free(struct rsb_notify *notify);
RSB_DEFINE_CLEANUP(struct rsb_notify *, rsb_notify_free)

/*
 * Another notifier in place of one that died: takes sock, also on failure. What was posted before
 * is lost, and those that waited for it have been told.
 */
rsb_nodiscard int rsb_notify_revive(struct rsb_notify *notify, int sock, int fuse_fd);

/* r: 0; -EPIPE: the notifier is gone; else what the kernel said, but that it has no such node. */
typedef void (*rsb_notify_fn)(void *arg, int r);

#define RSB_NOTIFY_QUEUED_MAX 65536u /* packets */

/* fd is borrowed for the call: the notifier gets a copy. */
rsb_nodiscard int rsb_notify_attach(struct rsb_notify *notify, int fuse_fd);
/*
 * Attributes alone, or with the pages (dirty ones are written back first). -ENOBUFS over
 * RSB_NOTIFY_QUEUED_MAX.
 */
rsb_nodiscard int rsb_notify_inode(struct rsb_notify *notify, uint64_t nodeid, bool pages);
/*
 * A file is at least so long (not 0): for what the kernel does without asking. Its pages stay, the
 * attributes it asks for again.
 */
rsb_nodiscard int rsb_notify_size(struct rsb_notify *notify, uint64_t nodeid, uint64_t size);
/*
 * Whether the kernel can take a name for one that it has to ask for again (FUSE_EXPIRE_ONLY, Linux
 * 6.2), instead of one that is not there. false at first.
 */
void rsb_notify_set_expires(struct rsb_notify *notify, bool expires);
/* A name is not to be believed any more. The listing of parent is not touched. */
rsb_nodiscard int rsb_notify_entry(
	struct rsb_notify *notify, uint64_t parent, const void *name, size_t size);
/* All names at once. done's r: -EOPNOTSUPP when the kernel (before 6.16) cannot. */
rsb_nodiscard int rsb_notify_epoch(struct rsb_notify *notify, rsb_notify_fn done, void *arg);
/* After everything posted so far. */
rsb_nodiscard int rsb_notify_fence(struct rsb_notify *notify, rsb_notify_fn done, void *arg);

#endif
