/* SPDX-License-Identifier: MIT */
#ifndef RSB_MONITOR_H
#define RSB_MONITOR_H

/*
 * The process that stays outside a sandbox: it builds it, starts pid 1 inside, hands out sockets
 * that are connected to ports inside, and takes everything down when pid 1 or rsb-local ends. No
 * process in the sandbox can see, signal or trace it.
 */

#include "util/macro.h"

/* Serves control (taken) until the sandbox is gone. The value is the exit status. */
rsb_nodiscard int rsb_monitor_run(int control);

#endif
