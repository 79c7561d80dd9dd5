/* SPDX-License-Identifier: MIT */
#ifndef RSB_DAEMON_H
#define RSB_DAEMON_H

/*
 * The daemon of one sandbox: its link (kept by the keeper, or to a fixed address), the mounted
 * file system, the control socket, on four threads: main, fuse, io, keeper.
 */

#include "fuse/options.h"
#include "fuse/shared.h"

/* Everything that was found out before the fork; borrowed. The result is the exit status. */
int rsb_daemon_main(
	const struct rsb_options *options, struct rsb_shared *shared, int sock, int notify_sock);

#endif
