/* SPDX-License-Identifier: MIT */
#ifndef RSB_NOTIFY_H
#define RSB_NOTIFY_H

/*
 * The notifier: a process of its own that tells the kernel what to forget. A notify may wait for
 * a request that the daemon has to answer, and for as long as that takes the caller cannot even be
 * killed; so no thread of the daemon ever makes one. It is forked before there are threads, gets
 * its copy of /dev/fuse when there is a mount, and ends with its socket.
 *
 * rsb_notify is the daemon's end. Orders are carried out one after the other; done() comes on the
 * loop's thread when the order is finished. Posting is for any thread.
 */

#include "util/cleanup.h"
#include "util/loop.h"

struct rsb_notify;

/* The notifier's own main: serves sock until its other end is closed, and closes it. */
void rsb_notify_main(int sock);

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

#define RSB_NOTIFY_NODES_MAX 4096u   /* in one packet */
#define RSB_NOTIFY_QUEUED_MAX 65536u /* packets */

/* fd is borrowed for the call: the notifier gets a copy. */
rsb_nodiscard int rsb_notify_attach(struct rsb_notify *notify, int fuse_fd);
/*
 * Attributes alone, or with the pages (dirty ones are written back first). -ENOBUFS over
 * RSB_NOTIFY_QUEUED_MAX.
 */
rsb_nodiscard int rsb_notify_inode(struct rsb_notify *notify, uint64_t nodeid, bool pages);
rsb_nodiscard int rsb_notify_entry(
	struct rsb_notify *notify, uint64_t parent, const void *name, size_t size);
/* All names at once. done's r: -EOPNOTSUPP when the kernel (before 6.16) cannot. */
rsb_nodiscard int rsb_notify_epoch(struct rsb_notify *notify, rsb_notify_fn done, void *arg);
/* After everything posted so far. */
rsb_nodiscard int rsb_notify_fence(struct rsb_notify *notify, rsb_notify_fn done, void *arg);

#endif
