/* SPDX-License-Identifier: MIT */
#ifndef RSB_PERM_H
#define RSB_PERM_H

/* Permission bits through any descriptor, O_PATH included. Any thread. */

#include "sidecar/root.h"

/* Never of a symbolic link: -EOPNOTSUPP. */
rsb_nodiscard int rsb_perm_set(const struct rsb_root *root, int fd, mode_t mode);
/*
 * What a write or a change of size by an unprivileged process does to a regular file: clears
 * set-user-ID, and set-group-ID where it does not mean mandatory locking. The kernel
 * does not do it for the sidecar, which is privileged.
 */
rsb_nodiscard int rsb_perm_kill_suidgid(const struct rsb_root *root, int fd);

#endif
