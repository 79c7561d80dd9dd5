/* SPDX-License-Identifier: MIT */
#ifndef RSB_MOUNTPOINT_H
#define RSB_MOUNTPOINT_H

/*
 * Where a sandbox is to be mounted, as far as it can be told without mounting: the verbs ask
 * before they make a sandbox, and the daemon before it connects. Never looks at a path below a
 * mount of ours.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/diag.h"

/* The absolute path without links, caller frees. A dead mount there is no obstacle. */
rsb_nodiscard int rsb_mountpoint_resolve(
	const char *path, char **ret_mountpoint, struct rsb_diag *diag);
/*
 * The same, and the directory is made if it is absent (its parent is not): *ret_made is which one
 * that is, for rsb_mountpoint_remove(); 0: it was there.
 */
rsb_nodiscard int rsb_mountpoint_make(
	const char *path, char **ret_mountpoint, uint64_t *ret_made, struct rsb_diag *diag);
/*
 * Removes it if it is the one that was made, is empty and nothing is mounted there. By inode number
 * and time of birth (statx(2)): where a file system tells no such time, one that the user has made
 * since may have got the same number.
 */
void rsb_mountpoint_remove(const char *mountpoint, uint64_t made);
/*
 * The mount point can be used: exists, is an empty directory, is no mount. -ENOENT, -ENOTDIR,
 * -ENOTEMPTY, -EBUSY (a mount of ours or of somebody else; the sentence says which), -ENODEV (no
 * /dev/fuse), -EACCES; -ENOENT also where a user's mount could not be taken away (no /etc/mtab).
 */
rsb_nodiscard int rsb_mountpoint_check(const char *mountpoint, struct rsb_diag *diag);
/* The device of that alone; the sentence says what helps. -ENODEV, -EACCES, -EPERM. */
rsb_nodiscard int rsb_mountpoint_check_fuse(struct rsb_diag *diag);
/* It would sync itself: -EINVAL when mountpoint is dir or lies in it. dir empty: there is none. */
rsb_nodiscard int rsb_mountpoint_outside(
	const char *mountpoint, const char *dir, struct rsb_diag *diag);
/*
 * All three, as a verb asks them, for a mount of what was synced in from dir. On failure nothing
 * stays that was made.
 */
rsb_nodiscard int rsb_mountpoint_prepare(const char *path, const char *dir, char **ret_mountpoint,
	uint64_t *ret_made, struct rsb_diag *diag);
/* One that is mounted below it, which keeps it from being unmounted; NULL: none. Caller frees. */
char *rsb_mountpoint_inner(const char *mountpoint);
/* Whether path (absolute, without links) lies in a mount of ours: what is there is a sandbox's. */
bool rsb_mountpoint_covers(const char *path);
/* A mount with our source and type is there: 1, else 0. name NULL: of any sandbox. */
int rsb_mountpoint_is_ours(const char *mountpoint, const char *name);

#endif
