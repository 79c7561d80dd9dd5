/* SPDX-License-Identifier: MIT */
#ifndef RSB_BOXPROC_H
#define RSB_BOXPROC_H

/* The monitor process of a sandbox (sidecar/envd/monitor.h), a child of rsb-local. */

#include <sys/types.h>

#include "util/buf.h"
#include "util/diag.h"

#include "sidecar/envd/boxgroup.h"

#define RSB_BOXPROC_START_NS (30 * RSB_NSEC_PER_SEC)

struct rsb_boxproc {
	pid_t pid;
	int fd;                     /* its pidfd */
	int control;                /* for sidecar/local/ask.h */
	int init_fd;                /* pidfd of the sandbox's pid 1; -1: it did not come so far */
	struct rsb_boxgroup cgroup; /* the monitor's to make and to remove, unless it was killed */
};

#define RSB_BOXPROC_INIT                               \
	{                                              \
		.fd = -1, .control = -1, .init_fd = -1 \
	}

/*
 * Runs it for the sandbox id with the configuration config, and waits until envd in the sandbox
 * answers. With a sentence: -EIO, -ETIMEDOUT, or why envd (a path) cannot be run. Nothing is left
 * after a failure.
 */
rsb_nodiscard int rsb_boxproc_start(struct rsb_boxproc *proc, const char *envd, const char *id,
	struct rsb_bytes config, struct rsb_diag *diag);
/* Ends the sandbox with all that is in it, and waits for that. */
void rsb_boxproc_end(struct rsb_boxproc *proc);
/* Closes the descriptors. */
void rsb_boxproc_done(struct rsb_boxproc *proc);

#endif
