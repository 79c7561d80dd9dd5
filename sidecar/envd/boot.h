/* SPDX-License-Identifier: MIT */
#ifndef RSB_BOOT_H
#define RSB_BOOT_H

/*
 * From the monitor's one-threaded process to a running pid 1: outer namespace, tree, inner
 * namespaces, and a fresh image of this program inside (init.h), which has none of our memory.
 */

#include <sys/types.h>

#include "sidecar/envd/bootcfg.h"
#include "sidecar/envd/boxgroup.h"

struct rsb_boot {
	pid_t pid; /* of the sandbox's pid 1, our child */
	int pidfd;
};

/*
 * Returns when envd listens. text is the configuration that cfg was parsed from. After a failure
 * pidfd is -1 or that of a process which the caller has to kill and wait for.
 */
rsb_nodiscard int rsb_boot_start(struct rsb_boot *boot, const struct rsb_bootcfg *cfg,
	struct rsb_bytes text, const struct rsb_boxgroup *cgroup, struct rsb_diag *diag);

/*
 * Runs this program again from a sealed copy in memory. pid 1's /proc/1/exe would else be a way
 * from inside to the host's own file, which an ordinary user's sandbox could write.
 */
rsb_nodiscard int rsb_boot_seal(char *const argv[]);

#endif
