/* SPDX-License-Identifier: MIT */
#ifndef RSB_REAPER_CGROUP_H
#define RSB_REAPER_CGROUP_H

/* The first rung of reaper.h: the command starts in a cgroup of its own and is our child. */

#include "sidecar/cgroup.h"
#include "sidecar/reaper.h"
#include "util/loop.h"

/* exec is read only during this call. cgroups must outlive the reaper. */
rsb_nodiscard int rsb_reaper_cgroup_new(struct rsb_loop *loop, const struct rsb_exec *exec,
	const struct rsb_reaper_events *events, void *arg, struct rsb_reaper **ret_reaper);

#endif
