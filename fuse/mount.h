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

/*
 * The mount point can be used: exists, is an empty directory, is no mount. -ENOENT, -ENOTDIR,
 * -ENOTEMPTY, -EBUSY (a mount of ours or of somebody else; the sentence says which), -ENODEV (no
 * /dev/fuse), -EACCES; -ENOENT also where a user's mount could not be taken away (no /etc/mtab).
 */
rsb_nodiscard int rsb_mount_check(const char *mountpoint, struct rsb_diag *diag);
/* The absolute path without links, caller frees. A dead mount there is no obstacle. */
rsb_nodiscard int rsb_mount_resolve(const char *path, char **ret_mountpoint, struct rsb_diag *diag);
/* *ret_fd: /dev/fuse, the caller's. */
rsb_nodiscard int rsb_mount_do(
	const struct rsb_mount_opts *opts, int *ret_fd, struct rsb_diag *diag);
/* lazy: at once, whoever uses it. -EBUSY without. A mount that is gone already is fine. */
rsb_nodiscard int rsb_mount_undo(const char *mountpoint, bool lazy);
/* A mount with our source and type is there: 1, else 0. */
int rsb_mount_is_ours(const char *mountpoint, const char *name);

#endif
