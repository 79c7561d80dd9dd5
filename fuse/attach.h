/* SPDX-License-Identifier: MIT */
#ifndef RSB_ATTACH_H
#define RSB_ATTACH_H

/*
 * How the daemon comes by the mount: the supervisor makes it and passes the device, or had made it
 * for a daemon that died, and then what that one knew is brought back first. Main thread, before
 * the loop runs.
 */

#include "fuse/control.h"
#include "fuse/session.h"
#include "fuse/uplink.h"

struct rsb_attach {
	struct rsb_loop *loop;
	struct rsb_fs *fs;
	struct rsb_notify *notify;
	struct rsb_barrier *barrier;
	struct rsb_control *control; /* NULL: none */
	struct rsb_uplink *uplink;
	int sock;      /* to the supervisor */
	bool no_mount; /* only commands: nothing is mounted */
	/* As of rsb_fuse_session_start(). */
	void (*ended)(void *arg, int r);
	void *arg;
};

/*
 * Returns when the kernel uses the mount. *mounted: there is one, also after a failure; something
 * on the loop may say that it is gone. *ret_session is the caller's, also after a failure.
 */
rsb_nodiscard int rsb_attach_mount(const struct rsb_attach *attach,
	struct rsb_fuse_session **ret_session, bool *mounted, struct rsb_diag *diag);

#endif
