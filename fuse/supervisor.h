/* SPDX-License-Identifier: MIT */
#ifndef RSB_SUPERVISOR_H
#define RSB_SUPERVISOR_H

/* What the supervisor's process knows; private to fuse/{supervise,offspring,handover}.c. */

#include "fuse/options.h"
#include "fuse/supervise.h"

struct rsb_supervisor {
	const struct rsb_supervise *opts;
	struct rsb_shared *shared;
	int shared_fd;
	int sock; /* to the daemon */
	int signal_fd;
	int status_fd; /* to the one who waits for the mount; -1: told */
	int fuse_fd;
	pid_t daemon;
	pid_t notifier;
	bool reported;
	bool mounted;
	bool unmounted;                       /* on request */
	uint64_t crashes_ns[RSB_CRASHES_MAX]; /* when the last ones were, in a circle */
	size_t n_crash;
	uint64_t kill_ns; /* when a daemon that was told to stop is killed; 0: never */
	int exit_status;
	int program;       /* that is to go on instead of ours; -1: none */
	uint64_t trial_ns; /* by when its daemon has to serve; 0: it was not started */
};

#endif
