/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "attr"

#include <errno.h>
#include <string.h>

#include "fuse/gitplace.h"
#include "fuse/guardload.h"
#include "fuse/hold.h"
#include "fuse/ops.h"
#include "fuse/push.h"
#include "fuse/reply.h"
#include "fuse/seen.h"
#include "fuse/send.h"
#include "fuse/wrote.h"
#include "keeper/target.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/str.h"

#define STATFS_KEEP_NS RSB_NSEC_PER_SEC

/* umount(8) looks at the root, and must not hang while the link is down. */
static bool
may_be_old(const struct rsb_fs *fs, const struct rsb_inode *inode)
{
	return !fs->cache.link_live && inode->nodeid == FUSE_ROOT_ID && inode->attr.mode;
}

static void
on_attr_ready(struct rsb_fop *fop, int r, const void *rep)
{
	(void)rep;
	if (r < 0)
		rsb_reply_err(fop, r);
	else
		rsb_reply_attr(fop, fop->inode);
}

static void
on_attr(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_attr_rep *got = rep;

	if (r < 0 && !may_be_old(fop->fs, fop->inode)) {
		rsb_reply_err(fop, r);
		return;
	}
	if (r >= 0)
		rsb_fs_learn(fop->fs, fop->inode, &got->attr, fop->since);
	rsb_guard_then(fop, fop->inode, on_attr_ready);
}

/* The open file that it is asked of cannot be used any more: the kernel was answered. */
static bool
is_broken(fuse_req_t req, const struct fuse_file_info *fi)
{
	struct rsb_handle *handle = fi ? rsb_handle_get(rsb_fop_fs(req)->handles, fi->fh) : NULL;

	if (!handle || !handle->broken)
		return false;
	rsb_reply_req_err(req, handle->broken);
	return true;
}

void
op_getattr(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi)
{
	struct rsb_inode *inode = rsb_fop_inode(req, nodeid);
	struct rsb_getattr_req msg;
	struct rsb_fop *fop;

	if (!inode)
		return;
	if ((rsb_fs_knows(rsb_fop_fs(req), inode) && rsb_guard_ready(rsb_fop_fs(req), inode)) ||
		may_be_old(rsb_fop_fs(req), inode)) {
		rsb_fop_fs(req)->stats.hits++;
		rsb_reply_req_attr(req, inode);
		return;
	}
	if (is_broken(req, fi))
		return;
	fop = rsb_fop_new(req);
	if (!fop)
		return;
	/* After a crash of ours there are no old ones: every path goes by the root. */
	if (nodeid == FUSE_ROOT_ID && inode->attr.mode)
		rsb_hold_never(fop);
	else if (nodeid == FUSE_ROOT_ID)
		rsb_hold_limit(fop);
	fop->inode = rsb_inode_ref(inode);
	rsb_push_inode(fop->fs, inode);
	msg = (struct rsb_getattr_req){ .node = inode->wire, .fh = rsb_handle_any_fh(inode) };
	rsb_fop_call(fop, RSB_OP_getattr, &msg, on_attr);
}

static struct rsb_time
from_timespec(const struct timespec *t)
{
	return (struct rsb_time){ .sec = t->tv_sec, .nsec = (uint64_t)t->tv_nsec };
}

/* -EPERM: a file cannot be given to that one. */
static int
fill_setattr(
	const struct rsb_fs *fs, const struct stat *attr, int valid, struct rsb_setattr_req *msg)
{
	static const struct {
		int kernel;
		uint64_t wire;
	} bits[] = {
		{ FUSE_SET_ATTR_MODE, RSB_SET_MODE },
		{ FUSE_SET_ATTR_UID, RSB_SET_UID },
		{ FUSE_SET_ATTR_GID, RSB_SET_GID },
		{ FUSE_SET_ATTR_SIZE, RSB_SET_SIZE },
		{ FUSE_SET_ATTR_ATIME, RSB_SET_ATIME },
		{ FUSE_SET_ATTR_MTIME, RSB_SET_MTIME },
		{ FUSE_SET_ATTR_ATIME_NOW, RSB_SET_ATIME_NOW },
		{ FUSE_SET_ATTR_MTIME_NOW, RSB_SET_MTIME_NOW },
	};
	int r = 0;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(bits); i++) {
		if (valid & bits[i].kernel)
			msg->valid |= bits[i].wire;
	}
	if (msg->valid & RSB_SET_ATIME_NOW)
		msg->valid &= ~(uint64_t)RSB_SET_ATIME;
	if (msg->valid & RSB_SET_MTIME_NOW)
		msg->valid &= ~(uint64_t)RSB_SET_MTIME;
	/* No member at all: chown(2) to nobody new, or what comes before a fallocate or a copy. */
	if (fs->kernel_kill || !msg->valid)
		msg->valid |= RSB_SET_KILL_SUIDGID;
	msg->mode = attr->st_mode & 07777;
	msg->size = (uint64_t)attr->st_size;
	msg->atime = from_timespec(&attr->st_atim);
	msg->mtime = from_timespec(&attr->st_mtim);
	if (valid & FUSE_SET_ATTR_UID)
		r = rsb_idmap_uid_out(&fs->config.idmap, attr->st_uid, &msg->uid);
	if (r >= 0 && valid & FUSE_SET_ATTR_GID)
		r = rsb_idmap_gid_out(&fs->config.idmap, attr->st_gid, &msg->gid);
	return r;
}

static void
on_setattr(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_attr_rep *got = rep;

	if (r < 0) {
		rsb_reply_err(fop, r);
		return;
	}
	if (fop->flags & FUSE_SET_ATTR_SIZE && rsb_wrote_concerns(fop->inode))
		rsb_wrote_cut(fop->fs, fop->inode, fop->offset,
			rsb_writer_of(rsb_fop_pid(fop), fop->inode, 0));
	rsb_fop_changed(fop, &got->attr, NULL);
	rsb_guard_then(fop, fop->inode, on_attr_ready);
}

void
op_setattr(
	fuse_req_t req, fuse_ino_t nodeid, struct stat *attr, int valid, struct fuse_file_info *fi)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_inode *inode = rsb_fop_inode(req, nodeid);
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct rsb_setattr_req msg = { .valid = 0 };
	struct rsb_fop *fop;
	int r;

	if (!inode || is_broken(req, fi))
		return;
	r = fill_setattr(fs, attr, valid, &msg);
	if (r < 0) {
		rsb_reply_req_err(req, r);
		return;
	}
	fop = rsb_fop_new(req);
	if (!fop)
		return;
	if (S_ISDIR(inode->attr.mode))
		rsb_hold_limit(fop);
	fop->inode = rsb_inode_ref(inode);
	fop->flags = (uint32_t)valid;
	fop->offset = msg.size;
	rsb_push_inode(fs, inode);
	msg.node = inode->wire;
	msg.fh = fi ? fi->fh : rsb_handle_any_fh(inode);
	msg.who = rsb_idmap_who(&fs->config.idmap, ctx->uid, ctx->gid);
	rsb_fop_mutate(fop, RSB_OP_setattr, &msg, on_setattr);
}

/* ---- readlink ---- */

/* The target as local programs may see it, or the errno that they get. */
static int
map_target(struct rsb_fs *fs, struct rsb_inode *inode, pid_t pid, char **ret_target)
{
	struct rsb_target_place place = {
		.workspace = fs->workspace ? fs->workspace : "",
		.mountpoint = fs->config.mountpoint,
	};
	int r;

	if (rsb_guard_bars_link(fs, inode))
		return -EACCES;
	/* Without a place only what needs none may pass. */
	r = rsb_seen_depth(inode);
	place.depth = r < 0 ? 0 : (size_t)r;
	r = rsb_target_map(&place, rsb_bytes_str(inode->target), ret_target);
	if (r >= 0 && rsb_guard_bars_way(fs, inode, *ret_target, pid))
		return -EACCES;
	if (r >= 0)
		rsb_gitplace_follow(inode, fs->config.mountpoint, rsb_bytes_str(*ret_target));
	if (r != -EACCES)
		return r;
	fs->stats.refused_links++;
	/* Once: a walk over the tree would fill the log. */
	if (inode->refused)
		return r;
	inode->refused = true;
	rsb_warn("the link '%s' leads out of the workspace, to '%s': not followed",
		inode->name ? inode->name : "?", inode->target);
	return r;
}

static void
reply_target(fuse_req_t req, struct rsb_inode *inode)
{
	rsb_autofree char *target = NULL;
	int r;

	r = map_target(rsb_fop_fs(req), inode, fuse_req_ctx(req)->pid, &target);
	if (r < 0)
		rsb_reply_req_err(req, r);
	else
		(void)fuse_reply_readlink(req, target);
}

static void
on_readlink(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_readlink_rep *got = rep;

	/* A target with a NUL is cut there, as every local program would. */
	if (r >= 0 && !fop->inode->target)
		fop->inode->target = rsb_str_dup(got->target);
	if (r >= 0 && !fop->inode->target)
		r = -ENOMEM;
	if (r < 0) {
		rsb_reply_err(fop, r);
		return;
	}
	if (fop->req)
		reply_target(fop->req, fop->inode);
	rsb_fop_free(fop);
}

void
op_readlink(fuse_req_t req, fuse_ino_t nodeid)
{
	struct rsb_inode *inode = rsb_fop_inode(req, nodeid);
	struct rsb_fop *fop;

	if (!inode)
		return;
	/* No call changes a link's target: it is that of this inode for its whole life. */
	if (inode->target) {
		rsb_fop_fs(req)->stats.hits++;
		reply_target(req, inode);
		return;
	}
	fop = rsb_fop_new(req);
	if (!fop)
		return;
	fop->inode = rsb_inode_ref(inode);
	rsb_fop_call(fop, RSB_OP_readlink, &(struct rsb_readlink_req){ .node = inode->wire },
		on_readlink);
}

/* ---- statfs ---- */

static void
reply_statfs(fuse_req_t req, const struct rsb_statfs_rep *s)
{
	struct statvfs st = {
		.f_bsize = s->bsize,
		.f_frsize = s->frsize,
		.f_blocks = s->blocks,
		.f_bfree = s->bfree,
		.f_bavail = s->bavail,
		.f_files = s->files,
		.f_ffree = s->ffree,
		.f_favail = s->ffree,
		.f_namemax = rsb_min(s->namemax, (uint64_t)RSB_NAME_MAX),
	};

	(void)fuse_reply_statfs(req, &st);
}

static void
on_statfs(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_fs *fs = fop->fs;

	if (r < 0 && !fs->statfs_ns) {
		rsb_reply_err(fop, r);
		return;
	}
	if (r >= 0) {
		fs->statfs = *(const struct rsb_statfs_rep *)rep;
		fs->statfs_ns = rsb_now_ns();
	}
	if (fop->req)
		reply_statfs(fop->req, &fs->statfs);
	rsb_fop_free(fop);
}

void
op_statfs(fuse_req_t req, fuse_ino_t nodeid)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_fop *fop;

	(void)nodeid;
	/* df(1) asks often, and must not hang while the link is down. */
	if (fs->statfs_ns &&
		(!fs->cache.link_live || rsb_now_ns() - fs->statfs_ns < STATFS_KEEP_NS)) {
		reply_statfs(req, &fs->statfs);
		return;
	}
	fop = rsb_fop_new(req);
	if (!fop)
		return;
	if (fs->statfs_ns)
		rsb_hold_never(fop);
	rsb_fop_call(fop, RSB_OP_statfs, NULL, on_statfs);
}

static void
on_statfs_ahead(void *arg, int r, const void *rep)
{
	struct rsb_fs *fs = arg;

	if (r < 0)
		return;
	fs->statfs = *(const struct rsb_statfs_rep *)rep;
	fs->statfs_ns = rsb_now_ns();
}

void
op_statfs_ahead(struct rsb_fs *fs)
{
	rsb_mutex_lock(&fs->lock);
	/* df(1) will ask by itself */
	(void)rsb_send_call(fs->send, RSB_OP_statfs, NULL, on_statfs_ahead, fs, NULL);
	rsb_mutex_unlock(&fs->lock);
}
