/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_HEARD_H
#define RSB_FUSE_HEARD_H

/*
 * What the daemon hears from its link, on the io thread, and who is told of it; and what is said of
 * it in the event log.
 */

#include "fuse/barrier.h"
#include "fuse/control.h"
#include "fuse/uplink.h"

struct rsb_heard {
	struct rsb_loop *loop;
	struct rsb_fs *fs;
	struct rsb_barrier *barrier;
	struct rsb_uplink *uplink;
	struct rsb_control *control; /* NULL: none */
	struct rsb_task epoch;       /* to the main thread: the sidecar is another one */
	struct rsb_task anew;        /* the same, and its session goes on */
	bool given_up;               /* the keeper has lost the sandbox, which was told */
};

extern const struct rsb_link_ops rsb_heard_ops; /* arg: struct rsb_heard */

/* Before the link connects. All are borrowed. */
void rsb_heard_init(struct rsb_heard *heard, struct rsb_loop *loop, struct rsb_fs *fs,
	struct rsb_barrier *barrier, struct rsb_uplink *uplink);
/* Main thread, now and then: says what there is to say, and what the keeper has come to. */
void rsb_heard_tick(struct rsb_heard *heard);

#endif
