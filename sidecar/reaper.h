/* SPDX-License-Identifier: MIT */
#ifndef RSB_REAPER_H
#define RSB_REAPER_H

/*
 * What starts one command, watches all processes that come from it, and kills them. Two rungs, one
 * interface: reaper-cgroup.h, where the command gets a cgroup of its own, and reaper-super.h, where
 * a small process stands above it as subreaper. Both prove that nothing is left, and no process
 * escapes by setsid(2).
 *
 * All on the io thread. Events come from the loop, never from within a call; after free none comes.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sidecar/proc-spawn.h"

/* Time that killed processes get to go before they count as unkillable. */
#define RSB_REAPER_BOUND_NS (10 * RSB_NSEC_PER_SEC)

/* As waitid(2) said. */
struct rsb_exit {
	bool unknown; /* it went without being seen */
	bool exited;  /* code counts, else signal */
	int code;
	int signal;
	bool core;
};

struct rsb_reaper_events {
	/*
	 * Once. failure NULL: the program runs as pid. Else nothing of it is left, and no other
	 * event comes.
	 */
	void (*started)(void *arg, pid_t pid, const struct rsb_exec_failure *failure);
	/* Once after started: the leader ended. What it wrote is in its pipes. */
	void (*exited)(void *arg, const struct rsb_exit *exit);
	/* Once after exited: nothing of the tree lives any more. */
	void (*empty)(void *arg);
	/* The bound passed after a kill; n processes are still there. */
	void (*unkillable)(void *arg, uint64_t n);
};

struct rsb_reaper;

struct rsb_reaper_ops {
	/* to: enum rsb_signal_to. -ESRCH: nobody is there. */
	int (*signal)(struct rsb_reaper *reaper, int signal, uint64_t to);
	/*
	 * TERM to all, KILL after the grace; a shorter grace of a later call wins. Ends with empty
	 * or unkillable.
	 */
	void (*kill)(struct rsb_reaper *reaper, uint64_t grace_ns);
	void (*free)(struct rsb_reaper *reaper);
};

struct rsb_reaper {
	const struct rsb_reaper_ops *ops;
	const struct rsb_reaper_events *events;
	void *arg;
};

rsb_nodiscard static inline int
rsb_reaper_signal(struct rsb_reaper *reaper, int signal, uint64_t to)
{
	return reaper->ops->signal(reaper, signal, to);
}

static inline void
rsb_reaper_kill(struct rsb_reaper *reaper, uint64_t grace_ns)
{
	reaper->ops->kill(reaper, grace_ns);
}

/* Processes that are left are killed and not waited for. NULL is fine. */
static inline void
rsb_reaper_free(struct rsb_reaper *reaper)
{
	if (reaper)
		reaper->ops->free(reaper);
}

#endif
