/* SPDX-License-Identifier: MIT */
#ifndef RSB_BENEATH_H
#define RSB_BENEATH_H

/*
 * Paths below a directory descriptor, one component after the other, none of which is followed as a
 * link: whatever is swapped meanwhile, nothing leads out.
 */

#include "util/buf.h"

/*
 * Opens path, relative, "" for the directory itself; flags as openat(2), close-on-exec and not
 * following are added. Returns the descriptor. -EINVAL: empty components, "." or ".."; -ELOOP or
 * -ENOTDIR: through a link or a file; else the errno of openat(2).
 */
rsb_nodiscard int rsb_beneath_open(int root_fd, const char *path, int flags);
/*
 * The directory that path is in; *ret_name is the last component, in path. -EINVAL also for "".
 */
rsb_nodiscard int rsb_beneath_parent(int root_fd, const char *path, const char **ret_name);
/* Appends all of a file. -EINVAL: it is no file; errors of rsb_fd_read_all(). */
rsb_nodiscard int rsb_beneath_read(int root_fd, const char *path, struct rsb_buf *out);

#endif
