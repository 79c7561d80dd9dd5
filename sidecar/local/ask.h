/* SPDX-License-Identifier: MIT */
#ifndef RSB_ASK_H
#define RSB_ASK_H

/* What rsb-local asks the monitor of a sandbox (sidecar/envd/bootctl.h). Any thread. */

#include "util/macro.h"

#define RSB_ASK_CONNECT_NS (5 * RSB_NSEC_PER_SEC)

/* Waits until fd can be read. -ETIMEDOUT. */
rsb_nodiscard int rsb_ask_wait(int fd, uint64_t timeout_ns);

/*
 * A non-blocking TCP socket that is connected to the port inside. -ECONNREFUSED nothing listens,
 * -ETIMEDOUT, -ENOTCONN the monitor is gone.
 */
rsb_nodiscard int rsb_ask_connect(int control, unsigned int port, int *ret_fd);
/* Waits until all processes stand still, as rsb_freezer_freeze(). -ENOTCONN. */
rsb_nodiscard int rsb_ask_freeze(int control);
rsb_nodiscard int rsb_ask_thaw(int control);

#endif
