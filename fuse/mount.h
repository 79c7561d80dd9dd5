/* SPDX-License-Identifier: MIT */
#ifndef RSB_MOUNT_H
#define RSB_MOUNT_H

/*
 * Puts the file system where it belongs and takes it away: mount(2) and umount2(2) as root,
 * fusermount3(1) for others. Never looks at a path below a mount of ours.
 */

#include <stdbool.h>

#include "util/diag.h"

struct rsb_mount_opts {
	const char *name;       /* of the sandbox: the source is rsb:NAME */
	const char *mountpoint; /* absolute */
	bool allow_other;
	bool read_only;
	bool noexec;
};

/* *ret_fd: /dev/fuse, the caller's. */
rsb_nodiscard int rsb_mount_do(
	const struct rsb_mount_opts *opts, int *ret_fd, struct rsb_diag *diag);
/* lazy: at once, whoever uses it. -EBUSY without. A mount that is gone already is fine. */
rsb_nodiscard int rsb_mount_undo(const char *mountpoint, bool lazy);

#endif
