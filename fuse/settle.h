/* SPDX-License-Identifier: MIT */
#ifndef RSB_SETTLE_H
#define RSB_SETTLE_H

/*
 * When nobody goes on with a mount: every request that the kernel waits for is answered with EIO.
 * Without that a notifier could hang in the kernel for ever, and with its copy of the descriptor
 * the connection would never end.
 */

#include <sys/types.h>

#include "fuse/shared.h"

/* fd: the device. Goes on for a moment, until the notifier ends. */
void rsb_settle_all(int fd, const struct rsb_shared *shared, pid_t notifier);

#endif
