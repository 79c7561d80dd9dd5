/* SPDX-License-Identifier: MIT */
#ifndef RSB_REPLY_H
#define RSB_REPLY_H

/*
 * Answers to the kernel; the one place where an errno turns positive. Each of the fop forms
 * answers, unless the caller was told EINTR already, and ends fop.
 */

#include "fuse/fop.h"

void rsb_reply_req_err(fuse_req_t req, int r);
void rsb_reply_req_attr(fuse_req_t req, struct rsb_inode *inode);
/* name in parent is inode, or NULL: absent. Counts the look-up. */
void rsb_reply_req_entry(
	fuse_req_t req, const struct rsb_inode *parent, const char *name, struct rsb_inode *inode);
void rsb_reply_req_open(fuse_req_t req, struct rsb_handle *handle, const struct fuse_file_info *fi);

void rsb_reply_err(struct rsb_fop *fop, int r); /* 0: success without a body */
void rsb_reply_entry(struct rsb_fop *fop, const struct rsb_inode *parent, const char *name,
	struct rsb_inode *inode);
/* fop->fi is told. -ENOENT: the kernel did not take it, nobody will release handle. */
rsb_nodiscard int rsb_reply_create(struct rsb_fop *fop, const struct rsb_inode *parent,
	struct rsb_inode *inode, struct rsb_handle *handle);
rsb_nodiscard int rsb_reply_open(struct rsb_fop *fop, struct rsb_handle *handle);
void rsb_reply_attr(struct rsb_fop *fop, struct rsb_inode *inode);
void rsb_reply_data(struct rsb_fop *fop, struct rsb_bytes data);
void rsb_reply_written(struct rsb_fop *fop, size_t size);

/* What a directory entry tells; with_node: the kernel counts it as a look-up. */
struct fuse_entry_param rsb_reply_param(struct rsb_fs *fs, const struct rsb_inode *parent,
	struct rsb_bytes name, struct rsb_inode *inode);

#endif
