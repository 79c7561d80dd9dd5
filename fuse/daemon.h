/* SPDX-License-Identifier: MIT */
#ifndef RSB_DAEMON_H
#define RSB_DAEMON_H

/*
 * The daemon of one sandbox: its link, the mounted file system, the control socket, on the
 * threads main, fuse, io and, with a kept sandbox, keeper.
 *
 * It ends when it is told to (a signal to the supervisor, ctl_stop), when somebody unmounts, or
 * when the supervisor is gone; always by sending what is buffered first.
 */

#include "fuse/shared.h"
#include "fuse/uplink.h"

/*
 * What was found out before the fork is borrowed; sock and notify_sock are taken. The result is
 * the exit status.
 */
int rsb_daemon_main(const struct rsb_options *options, struct rsb_uplink *uplink,
	struct rsb_shared *shared, const int socks[static 2]);

#endif
