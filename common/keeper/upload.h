/* SPDX-License-Identifier: MIT */
#ifndef RSB_UPLOAD_H
#define RSB_UPLOAD_H

/*
 * An archive on its way into a workspace: a link of its own, one tar_in call, one stream. Every
 * function waits, and fails with -ETIMEDOUT when nothing moved for the timeout of far. Not
 * thread-safe.
 */

#include "keeper/sync.h"

struct rsb_upload;

rsb_nodiscard int rsb_upload_open(
	const struct rsb_sync_far *far, struct rsb_upload **ret_upload, struct rsb_diag *diag);
/* Also ends what is under way. NULL is fine. */
void rsb_upload_free(struct rsb_upload *upload);
RSB_DEFINE_CLEANUP(struct rsb_upload *, rsb_upload_free)
/* The far side's error, if it gave up meanwhile. */
rsb_nodiscard int rsb_upload_write(struct rsb_upload *upload, struct rsb_bytes data);
/* After the last byte: waits until everything is in place over there. */
rsb_nodiscard int rsb_upload_finish(struct rsb_upload *upload, struct rsb_diag *diag);
/* After that went well: what is there not quite as here; empty: nothing. */
const char *rsb_upload_remark(const struct rsb_upload *upload);
/* The sentence about what went wrong over there. */
void rsb_upload_explain(struct rsb_upload *upload, int r, struct rsb_diag *diag);

#endif
