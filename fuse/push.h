/* SPDX-License-Identifier: MIT */
#ifndef RSB_PUSH_H
#define RSB_PUSH_H

/*
 * Unsent data on its way: out of the buffers, as write messages, and what waits for them.
 * At most one handle of a node has unsent data; who reads or changes the node pushes first, and
 * its own message, sent after, is executed after.
 */

#include "fuse/fop.h"

/* Sends all that is buffered. Never waits; errors show in handle->error. */
void rsb_push_handle(struct rsb_fs *fs, struct rsb_handle *handle);
void rsb_push_inode(struct rsb_fs *fs, struct rsb_inode *inode);
void rsb_push_all(struct rsb_fs *fs);

/*
 * Buffers data written through handle, sending what does not fit, and other handles' data of the
 * same node before. -ENOMEM.
 */
rsb_nodiscard int rsb_push_write(
	struct rsb_fs *fs, struct rsb_handle *handle, uint64_t offset, struct rsb_bytes data);
/* Sends at once at offset, past the buffer: pages that the kernel writes back. */
void rsb_push_through(
	struct rsb_fs *fs, struct rsb_handle *handle, uint64_t offset, struct rsb_bytes data);

/*
 * Calls fn with handle's untold error, or 0, when all of handle that was sent so far has
 * arrived: maybe at once.
 */
void rsb_push_drain(struct rsb_fop *fop, struct rsb_handle *handle, rsb_fop_fn fn);
/* The same when fewer than RSB_FS_SENT_MAX bytes are on their way; r is 0. */
void rsb_push_room(struct rsb_fop *fop, rsb_fop_fn fn);

/*
 * After a crash: the call was made again; it counts as one of handle's writes. Those of one handle
 * come in the order in which they were made.
 */
rsb_nodiscard int rsb_push_again(struct rsb_fs *fs, struct rsb_handle *handle,
	const struct rsb_write_req *req, uint64_t serial);

#endif
