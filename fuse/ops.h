/* SPDX-License-Identifier: MIT */
#ifndef RSB_OPS_H
#define RSB_OPS_H

/*
 * The table of handlers for libfuse. Their files are twins of the sidecar's: fuse/op-name.c and
 * sidecar/op-name.c have the same operations. A handler runs on the fuse thread, under the lock
 * of fuse/fs.h, and answers at once or sends a message and returns.
 */

#include "fuse/fop.h"

extern const struct fuse_lowlevel_ops rsb_ops_table;

/* op-name.c */
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_forget(fuse_req_t req, fuse_ino_t nodeid, uint64_t n);
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
	const char *newname, unsigned int flags);
void op_link(fuse_req_t req, fuse_ino_t nodeid, fuse_ino_t newparent, const char *newname);

/* op-attr.c */
void op_getattr(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi);
void op_setattr(
	fuse_req_t req, fuse_ino_t nodeid, struct stat *attr, int valid, struct fuse_file_info *fi);
void op_readlink(fuse_req_t req, fuse_ino_t nodeid);
void op_statfs(fuse_req_t req, fuse_ino_t nodeid);
/*
 * Without a request: so that df(1) has an answer when the link breaks before it asked once. Takes
 * the lock by itself.
 */
/* Listings under way over there begin once more, behind what is known of them. */
void op_dir_again(struct rsb_fs *fs);
void op_statfs_ahead(struct rsb_fs *fs);

/* op-file.c */
void op_open(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	struct fuse_file_info *fi);
void op_flush(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi);
void op_release(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi);
void op_fsync(fuse_req_t req, fuse_ino_t nodeid, int data_only, struct fuse_file_info *fi);

/* op-data.c */
void op_read(
	fuse_req_t req, fuse_ino_t nodeid, size_t size, off_t offset, struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t nodeid, const char *data, size_t size, off_t offset,
	struct fuse_file_info *fi);
void op_fallocate(fuse_req_t req, fuse_ino_t nodeid, int mode, off_t offset, off_t length,
	struct fuse_file_info *fi);
void op_lseek(
	fuse_req_t req, fuse_ino_t nodeid, off_t offset, int whence, struct fuse_file_info *fi);
void op_copy_file_range(fuse_req_t req, fuse_ino_t nodeid_in, off_t off_in,
	struct fuse_file_info *fi_in, fuse_ino_t nodeid_out, off_t off_out,
	struct fuse_file_info *fi_out, size_t length, int flags);

/* op-dir.c */
void op_opendir(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi);
void op_readdir(
	fuse_req_t req, fuse_ino_t nodeid, size_t size, off_t offset, struct fuse_file_info *fi);
void op_readdirplus(
	fuse_req_t req, fuse_ino_t nodeid, size_t size, off_t offset, struct fuse_file_info *fi);
void op_releasedir(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi);
void op_fsyncdir(fuse_req_t req, fuse_ino_t nodeid, int data_only, struct fuse_file_info *fi);

/* op-xattr.c */
void op_setxattr(fuse_req_t req, fuse_ino_t nodeid, const char *name, const char *value,
	size_t size, int flags);
void op_getxattr(fuse_req_t req, fuse_ino_t nodeid, const char *name, size_t size);
void op_listxattr(fuse_req_t req, fuse_ino_t nodeid, size_t size);
void op_removexattr(fuse_req_t req, fuse_ino_t nodeid, const char *name);

/* op-lock.c */
void op_getlk(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi, struct flock *lock);
void op_setlk(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi, struct flock *lock,
	int sleep);
void op_flock(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi, int op);

#endif
