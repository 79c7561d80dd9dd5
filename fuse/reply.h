/* SPDX-License-Identifier: MIT */
#ifndef RSB_REPLY_H
#define RSB_REPLY_H

/*
 * Answers to the kernel; the one place where an errno turns positive. Each of the fop forms
 * answers, unless the caller was told EINTR already, and ends fop.
 */

#include "fuse/fop.h"

void rsb_reply_req_err(fuse_req_t req, int r);

void rsb_reply_err(struct rsb_fop *fop, int r); /* 0: success without a body */
/* Counts the look-up; inode's attr is told, kept by the kernel as long as the cache allows. */
void rsb_reply_entry(struct rsb_fop *fop, struct rsb_inode *inode);
void rsb_reply_req_entry(fuse_req_t req, struct rsb_inode *inode, bool keep);
/* There is no such name, and the kernel may remember that. */
void rsb_reply_req_absent(fuse_req_t req, bool keep);
void rsb_reply_create(struct rsb_fop *fop, struct rsb_inode *inode, struct rsb_handle *handle);
void rsb_reply_attr(struct rsb_fop *fop, struct rsb_inode *inode);
void rsb_reply_req_attr(fuse_req_t req, struct rsb_inode *inode);
void rsb_reply_open(struct rsb_fop *fop, struct rsb_handle *handle);
void rsb_reply_req_open(fuse_req_t req, struct rsb_handle *handle, const struct fuse_file_info *fi);
void rsb_reply_data(struct rsb_fop *fop, struct rsb_bytes data);
void rsb_reply_written(struct rsb_fop *fop, size_t size);

#endif
