/* SPDX-License-Identifier: MIT */
#ifndef RSB_BOOTCTL_H
#define RSB_BOOTCTL_H

/*
 * Messages between rsb-local and the monitor of a sandbox, over a SOCK_SEQPACKET pair that is the
 * monitor's standard input. Both are the same build on one machine, so these are plain structs.
 *
 *	rsb-local -> monitor   the configuration (bootcfg.h)
 *	monitor -> rsb-local   rsb_bootctl_ready, with a pidfd of the sandbox's pid 1 when r is 0
 *	rsb-local -> monitor   rsb_bootctl_ask with an end of a socket pair, any number of them
 *	monitor -> that pair   rsb_bootctl_answer; to CONNECT with the socket when r is 0
 *
 * The answer's own socket pair makes requests independent: no lock and no matching of replies.
 * The monitor is outside the sandbox and no process inside can reach it.
 */

#include "util/diag.h"

struct rsb_bootctl_ready {
	int32_t r;
	char text[RSB_DIAG_MAX];
};

enum rsb_bootctl_what {
	RSB_BOOTCTL_CONNECT,
	RSB_BOOTCTL_FREEZE, /* answered when all stands still */
	RSB_BOOTCTL_THAW,
};

struct rsb_bootctl_ask {
	uint32_t what; /* enum rsb_bootctl_what */
	uint32_t port;
	uint32_t ipv6; /* 1: ::1, 0: 127.0.0.1 */
};

/* The socket is non-blocking and may still be connecting: wait for it to be writable. */
struct rsb_bootctl_answer {
	int32_t r;
};

#endif
