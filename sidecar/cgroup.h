/* SPDX-License-Identifier: MIT */
#ifndef RSB_CGROUP_H
#define RSB_CGROUP_H

/*
 * Cgroups (version 2) of our own, one for each command: only the core files are used, so that no
 * controller has to be enabled anywhere. cgroups(7), Documentation/admin-guide/cgroup-v2.rst.
 */

#include <stdint.h>
#include <sys/types.h>

#include "util/macro.h"

/* The directory below which they are made: a child of the cgroup that the sidecar runs in. */
struct rsb_cgroups;

/*
 * Tries it all once: make one, clone(2) into it, kill it, remove it. An errno when this system does
 * not do it (no cgroup2, not root, not delegated, a kernel before 5.14). Then removes, with all
 * that lives in them, those of sidecars that are dead for certain: their name has the process
 * number, its start time and its PID name space.
 */
rsb_nodiscard int rsb_cgroups_new(struct rsb_cgroups **ret_cgroups);
/* Also kills and removes what is left. NULL is fine. */
void rsb_cgroups_free(struct rsb_cgroups *cgroups);

struct rsb_cgroup {
	uint64_t number;
	int dir_fd;
	int events_fd; /* EPOLLPRI when populated may have changed */
};

rsb_nodiscard int rsb_cgroup_make(struct rsb_cgroups *cgroups, struct rsb_cgroup *ret_cgroup);
/* Closes and removes; one that is not empty stays until rsb_cgroups_free(). */
void rsb_cgroup_remove(struct rsb_cgroups *cgroups, struct rsb_cgroup *cgroup);

/* As fork(2), with the child inside. Only async-signal-safe calls in the child. */
rsb_nodiscard int rsb_cgroup_fork(struct rsb_cgroup *cgroup, pid_t *ret_pid, int *ret_pidfd);

/* 1 or 0. */
rsb_nodiscard int rsb_cgroup_populated(struct rsb_cgroup *cgroup);
/* KILL to all that live in it and below, also to what is forked meanwhile. */
rsb_nodiscard int rsb_cgroup_kill(struct rsb_cgroup *cgroup);
/*
 * Sends to every process, or (pgid > 0) to those of one process group. Number of processes, 0:
 * none.
 */
rsb_nodiscard int rsb_cgroup_signal(struct rsb_cgroup *cgroup, int signal, pid_t pgid);
/* Processes in it. */
rsb_nodiscard int rsb_cgroup_count(struct rsb_cgroup *cgroup);

#endif
