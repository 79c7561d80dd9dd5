/* SPDX-License-Identifier: MIT */
#include "fuse/ops.h"

static void
op_init(void *arg, struct fuse_conn_info *conn)
{
	(void)arg;
	/* The kernel's 12 would stop a parallel build; pages written back count as background. */
	conn->max_background = 256;
	conn->congestion_threshold = 192;
	conn->time_gran = 1;
	/* Never: the kernel would own size and times and ignore what the sandbox does to them. */
	conn->want &= ~(unsigned int)FUSE_CAP_WRITEBACK_CACHE;
}

const struct fuse_lowlevel_ops rsb_ops_table = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.open = op_open,
	.create = op_create,
	.read = op_read,
	.write = op_write,
	.flush = op_flush,
	.release = op_release,
	.fsync = op_fsync,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.releasedir = op_releasedir,
	.fsyncdir = op_fsyncdir,
	.statfs = op_statfs,
	.setxattr = op_setxattr,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.removexattr = op_removexattr,
	.getlk = op_getlk,
	.setlk = op_setlk,
	.flock = op_flock,
	.fallocate = op_fallocate,
	.lseek = op_lseek,
	.copy_file_range = op_copy_file_range,
};
