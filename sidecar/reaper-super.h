/* SPDX-License-Identifier: MIT */
#ifndef RSB_REAPER_SUPER_H
#define RSB_REAPER_SUPER_H

/*
 * The second rung of reaper.h: our child is a supervisor (warden.h), and the command is its
 * child.
 */

#include "sidecar/reaper.h"
#include "util/loop.h"

/* exec is read only during this call. */
rsb_nodiscard int rsb_reaper_super_new(struct rsb_loop *loop, const struct rsb_exec *exec,
	const struct rsb_reaper_events *events, void *arg, struct rsb_reaper **ret_reaper);

#endif
