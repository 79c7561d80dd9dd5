/* SPDX-License-Identifier: MIT */
#ifndef RSB_SUPERVISE_H
#define RSB_SUPERVISE_H

/*
 * The supervisor: the process that holds what a crash of the daemon must not take away, that is
 * the descriptor of /dev/fuse, the shared mapping and the mount itself. It forks the notifier and
 * the daemon, and mounts when the daemon says that it can serve. When the daemon is killed it forks
 * another one, which goes on where that one was (fuse/recover.h); when that cannot be, or happens
 * too often, it answers what the kernel waits for with EIO and unmounts, so that no dead mount
 * stays. It has one thread and no link.
 */

#include <sys/types.h>

#include "fuse/mount.h"
#include "fuse/shared.h"
#include "fuse/takeover.h"

struct rsb_supervise {
	struct rsb_mount_opts mount;
	bool foreground;
	unsigned int crashes; /* so many within a minute are survived */
	/*
	 * The daemon's main, in a process of its own. sock: to the supervisor; notify_sock: to
	 * the notifier. Its result is the exit status.
	 */
	int (*daemon)(void *arg, struct rsb_shared *shared, int sock, int notify_sock);
	void *arg;
	/* For another program that goes on with the mount (fuse/handover.h). */
	char *const *again; /* its argv */
	int lock_fd;        /* that it is to have; -1: none */
};

/*
 * Forks all and returns in the caller's process when the mount answers (0) or cannot (negative
 * errno with a sentence); in the foreground: when it has ended, with the exit status.
 */
rsb_nodiscard int rsb_supervise(const struct rsb_supervise *supervise, struct rsb_diag *diag);
/* In a supervisor that has become this program. The result is the exit status. */
rsb_nodiscard int rsb_supervise_go_on(const struct rsb_supervise *supervise,
	const struct rsb_takeover *takeover, struct rsb_diag *diag);

#endif
