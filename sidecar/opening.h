/* SPDX-License-Identifier: MIT */
#ifndef RSB_OPENING_H
#define RSB_OPENING_H

/* From a node to an open file in the session's table. Any thread. */

#include "proto/op.h"
#include "sidecar/root.h"
#include "sidecar/sess.h"

/* O_EXCL on the wire, where all flags are those of x86-64. */
#define RSB_OPENING_EXCL UINT64_C(0200)

/*
 * Those of open(2) here. O_APPEND is not among them: it would bend writes that are none, see
 * append() in op-file.c. -EINVAL.
 */
rsb_nodiscard int rsb_opening_flags(uint64_t wire, int *ret_flags);
/* The file behind path_fd, opened with flags; wire: for RSB_OPEN_KEEP_SUIDGID. The caller's. */
rsb_nodiscard int rsb_opening_path(
	const struct rsb_root *root, int path_fd, int flags, uint64_t wire);
/*
 * fd: the open file, path_fd: O_PATH of it; both are taken in any case. O_DIRECT has told by now
 * whether the file system has it; what comes off the wire is not aligned for it.
 */
rsb_nodiscard int rsb_opening_enter(
	struct rsb_sess *sess, uint64_t fh, uint64_t id, int fd, int path_fd);

/* All of it. */
rsb_nodiscard int rsb_opening_node(
	struct rsb_sess *sess, const struct rsb_open_req *req, struct rsb_attr_rep *ret_rep);
/* The same for a file that was open in another process: what is in it stays. */
rsb_nodiscard int rsb_opening_again(
	struct rsb_sess *sess, const struct rsb_open_req *req, struct rsb_attr_rep *ret_rep);

#endif
