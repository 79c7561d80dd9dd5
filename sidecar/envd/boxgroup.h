/* SPDX-License-Identifier: MIT */
#ifndef RSB_BOXGROUP_H
#define RSB_BOXGROUP_H

/*
 * A control group (v2) of the sandbox's own, below the caller's. There is none where v2 is not
 * mounted or not writable; everything works without it.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/macro.h"

struct rsb_boxgroup {
	char path[PATH_MAX]; /* empty: none */
};

/* Where it is or would be: a child of the caller's finds the same. */
void rsb_boxgroup_find(struct rsb_boxgroup *cgroup, const char *id);
/* Makes it. */
void rsb_boxgroup_init(struct rsb_boxgroup *cgroup, const char *id);
void rsb_boxgroup_enter(const struct rsb_boxgroup *cgroup, pid_t pid);
/*
 * Stops all that is in it, and waits for that up to wait_ns: -ETIMEDOUT. Or lets it go on, which
 * takes no time. -EOPNOTSUPP: there is no group, or an old kernel.
 */
rsb_nodiscard int rsb_boxgroup_freeze(
	const struct rsb_boxgroup *cgroup, bool freeze, uint64_t wait_ns);
/* Kills what is left in it and removes it, if it is there. */
void rsb_boxgroup_done(struct rsb_boxgroup *cgroup);

#endif
