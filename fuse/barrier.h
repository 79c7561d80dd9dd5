/* SPDX-License-Identifier: MIT */
#ifndef RSB_BARRIER_H
#define RSB_BARRIER_H

/*
 * What makes commands and the mount see each other's work. Before a command: the kernel writes
 * dirty pages back, write buffers are sent, names, attributes and pages are dropped here and in
 * the kernel; the command is then sent to start after all mutations before it. After it: pages
 * and attributes of what is open are dropped and the kernel learns the files' sizes, then its
 * status may be told. The cache goes on again when no process of any command lives.
 *
 * Main thread; done() comes there too, at once or later, in any case within RSB_BARRIER_MAX_S:
 * late says that the kernel had not answered by then.
 */

#include "fuse/fs.h"
#include "fuse/notify.h"

#define RSB_BARRIER_MAX_S 10u
#define RSB_BARRIER_DRAIN_S 30u
#define RSB_BARRIER_FORCED_S 3u /* the same while the link is not live, if that is forced */

struct rsb_barrier;

/* notify NULL: there is no mount, so nobody to tell. */
rsb_nodiscard int rsb_barrier_new(struct rsb_fs *fs, struct rsb_notify *notify,
	struct rsb_loop *loop, struct rsb_barrier **ret_barrier);
/* Those under way are forgotten without done(). */
void rsb_barrier_free(struct rsb_barrier *barrier);
RSB_DEFINE_CLEANUP(struct rsb_barrier *, rsb_barrier_free)

/* The mount is there: finds out whether its kernel can drop all names at once. */
void rsb_barrier_attach(struct rsb_barrier *barrier);

typedef void (*rsb_barrier_fn)(void *arg, bool late);

/*
 * Before somebody else may change the workspace; counts him until rsb_barrier_leave(). After
 * done(), what is sent by fuse/send.h comes after all that was written.
 */
rsb_nodiscard int rsb_barrier_enter(struct rsb_barrier *barrier, rsb_barrier_fn done, void *arg);
/* What he did so far becomes visible here. */
rsb_nodiscard int rsb_barrier_show(struct rsb_barrier *barrier, rsb_barrier_fn done, void *arg);
/* Nothing of his lives any more. */
void rsb_barrier_leave(struct rsb_barrier *barrier);
/* The sidecar is another one: nothing that the kernel keeps counts any more. */
void rsb_barrier_reset(struct rsb_barrier *barrier);
/* Another notifier is there; what the one before had still to tell is lost. */
void rsb_barrier_revived(struct rsb_barrier *barrier);
/*
 * Sends all that is buffered, tells when it has arrived; late: not within RSB_BARRIER_DRAIN_S, or
 * there is no hope for it.
 */
rsb_nodiscard int rsb_barrier_drain(
	struct rsb_barrier *barrier, bool forced, rsb_barrier_fn done, void *arg);

#endif
