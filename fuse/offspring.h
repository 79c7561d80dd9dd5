/* SPDX-License-Identifier: MIT */
#ifndef RSB_OFFSPRING_H
#define RSB_OFFSPRING_H

/* The supervisor's children: the notifier and the daemon. */

#include "fuse/supervisor.h"

/* *ret_sock: the daemon's end, the caller's. */
rsb_nodiscard int rsb_offspring_notifier(struct rsb_supervisor *s, int *ret_sock);
/*
 * Daemon and notifier, also in place of those that died. The daemon's program is s->program if
 * there is one.
 */
rsb_nodiscard int rsb_offspring_start(struct rsb_supervisor *s);

#endif
