/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_LOG_H
#define RSB_FUSE_LOG_H

/*
 * What an open file has written and not sent, once more in the shared mapping: bytes are in here
 * before the kernel is told that they were taken, and leave after they are in a call. Also a
 * directory's listing as far as it was read, so that who reads on finds the same names at the same
 * places, and the view that git is given of a file.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/arena.h"
#include "fuse/handle.h"

/* Bytes that went into handle->wbuf and count in handle->put by this. -ENOBUFS. */
rsb_nodiscard int rsb_log_put(
	struct rsb_arena *arena, struct rsb_handle *handle, uint64_t offset, struct rsb_bytes data);
/* wbuf has changed by being sent: what is left of it counts from now on. */
void rsb_log_cut(struct rsb_arena *arena, struct rsb_handle *handle);
/*
 * Fills wbuf, put, snap and view from what a process that died had logged. What it could not log
 * whole is broken, rather than another.
 */
rsb_nodiscard int rsb_log_restore(
	struct rsb_arena *arena, struct rsb_handle *handle, struct rsb_dirsnaps *listings);
/* Bytes up to mark are in calls that were made: they leave wbuf. Before wbuf is used. */
rsb_nodiscard int rsb_log_covered(
	struct rsb_arena *arena, struct rsb_handle *handle, uint64_t mark);

/* handle->snap is about to be read from, or has grown since. */
void rsb_log_snap(struct rsb_arena *arena, struct rsb_handle *handle);
/* Taken; NULL: the file itself is read. */
void rsb_log_set_view(
	struct rsb_arena *arena, struct rsb_handle *handle, struct rsb_guard_view *view);
/* handle has another snap, or none. */
void rsb_log_drop_snap(struct rsb_arena *arena, struct rsb_handle *handle);

#endif
