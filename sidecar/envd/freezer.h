/* SPDX-License-Identifier: MIT */
#ifndef RSB_FREEZER_H
#define RSB_FREEZER_H

/*
 * Stops every process of a sandbox, pid 1 included, and lets them go on: by the control group where
 * there is one (cgroup.freeze, cgroups(7)), else by SIGSTOP from outside, which pid 1 cannot ignore
 * either (pid_namespaces(7)). Nothing inside can end that. For the monitor.
 */

#include "sidecar/envd/boxgroup.h"

#define RSB_FREEZER_NS (10 * RSB_NSEC_PER_SEC)

/* A process that was stopped by a signal, as /proc names it. */
struct rsb_frozen {
	pid_t pid;
	uint64_t started; /* clock ticks after boot: another one of that number is not it */
};

struct rsb_freezer {
	const struct rsb_boxgroup *cgroup; /* borrowed */
	pid_t init;                        /* a child that was not waited for */
	struct rsb_frozen *stopped;
	size_t n_stopped, n_room;
};

/*
 * Waits until all of them stand still. -ETIMEDOUT: one did not in RSB_FREEZER_NS, and after any
 * failure all go on.
 */
rsb_nodiscard int rsb_freezer_freeze(struct rsb_freezer *freezer);
/* Those that were stopped before go on being stopped. */
void rsb_freezer_thaw(struct rsb_freezer *freezer);
/* Thaws nothing. */
void rsb_freezer_done(struct rsb_freezer *freezer);

#endif
