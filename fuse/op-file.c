/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fuse/guardload.h"
#include "fuse/guardopen.h"
#include "fuse/hold.h"
#include "fuse/judge.h"
#include "fuse/ledger.h"
#include "fuse/lockset.h"
#include "fuse/log.h"
#include "fuse/ops.h"
#include "fuse/push.h"
#include "fuse/reply.h"
#include "fuse/seen.h"
#include "fuse/send.h"
#include "fuse/wrote.h"

/* Of the kernel's open(2) flags: it is opened to be executed. */
#define FMODE_EXEC 0x20

/*
 * What counts over there. Appending is a flag of each write instead: pages that the kernel writes
 * back through an appending descriptor must land where they came from.
 */
static uint64_t
far_flags(const struct rsb_fs *fs, int flags)
{
	uint64_t far = (uint64_t)(flags & (O_ACCMODE | O_TRUNC | O_EXCL | O_SYNC | O_DSYNC));

	/* It did so itself where it does not ask us to: root's truncation takes nothing away. */
	return fs->kernel_kill ? far : far | RSB_OPEN_KEEP_SUIDGID;
}

static void
forget_handle(struct rsb_fs *fs, struct rsb_handle *handle)
{
	rsb_send_post(fs->send, RSB_OP_release, &(struct rsb_fh_req){ .fh = handle->fh });
	rsb_handle_set_closed(handle);
	rsb_handle_unref(fs->handles, handle);
}

/* It may be opened over there yet, behind everybody's back. */
static void
release_unknown(struct rsb_fs *fs, uint64_t fh, int r)
{
	if (r == -ENOTCONN)
		rsb_send_post(fs->send, RSB_OP_release, &(struct rsb_fh_req){ .fh = fh });
}

/* ---- open ---- */

static void
fail_open(struct rsb_fop *fop, int r)
{
	struct rsb_fs *fs = fop->fs;
	struct rsb_handle *handle = rsb_handle_ref(fop->handle);

	rsb_reply_err(fop, r);
	/* The kernel's reference too: it never heard of it. */
	rsb_handle_unref(fs->handles, handle);
	rsb_handle_unref(fs->handles, handle);
}

/*
 * Nobody knows whether the sidecar that ended had opened it; the one of now can do so again, since
 * nothing else comes of it.
 */
static bool
open_once_more(struct rsb_fop *fop, int r, rsb_fop_fn fn)
{
	enum rsb_link_state state = rsb_link_state(fop->fs->link);
	const struct rsb_open_req msg = {
		.node = fop->inode->wire,
		.fh = fop->handle->fh,
		.flags = far_flags(fop->fs, fop->fi.flags),
	};

	if (r != -ENOTCONN || fop->fi.flags & O_TRUNC ||
		(state != RSB_LINK_LIVE && state != RSB_LINK_RESYNC))
		return false;
	rsb_fop_call(fop, RSB_OP_reopen, &msg, fn);
	return true;
}

static void
began_empty(const struct rsb_fop *fop, struct rsb_inode *inode)
{
	if (rsb_wrote_concerns(inode))
		rsb_wrote_begin(fop->fs, inode, (struct rsb_bytes){ 0 },
			rsb_writer_of(rsb_fop_pid(fop), inode, fop->fi.flags));
}

static void
on_open(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_fs *fs = fop->fs;
	const struct rsb_attr_rep *got = rep;
	struct rsb_handle *handle;

	if (open_once_more(fop, r, on_open))
		return;
	if (r >= 0 && fop->nameless) {
		rsb_send_post(
			fs->send, RSB_OP_release, &(struct rsb_fh_req){ .fh = fop->handle->fh });
		r = -ESTALE;
	}
	if (r < 0) {
		release_unknown(fs, fop->handle->fh, r);
		fail_open(fop, r);
		return;
	}
	handle = rsb_handle_ref(fop->handle);
	rsb_fs_learn(fs, fop->inode, &got->attr, fop->since);
	rsb_fop_changed(fop, &got->attr, NULL);
	if (fop->fi.flags & O_TRUNC)
		began_empty(fop, fop->inode);
	if (rsb_reply_open(fop, handle) < 0)
		forget_handle(fs, handle);
	rsb_handle_unref(fs->handles, handle);
}

/* The kernel was answered already: an error is that of everything done with it later. */
static void
on_open_late(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_attr_rep *got = rep;

	if (open_once_more(fop, r, on_open_late))
		return;
	fop->handle->unconfirmed = false;
	if (r < 0)
		rsb_handle_set_broken(fop->handle, r);
	else
		rsb_fs_learn(fop->fs, fop->inode, &got->attr, fop->since);
	rsb_fop_free(fop);
}

/* The handle and the request for it; NULL: answered. */
static struct rsb_fop *
begin_open(fuse_req_t req, struct rsb_inode *inode, const struct fuse_file_info *fi)
{
	struct rsb_fop *fop = rsb_fop_new(req);
	struct rsb_handle *handle;
	uint64_t fh;
	int r;

	if (!fop)
		return NULL;
	fop->inode = rsb_inode_ref(inode);
	fop->fi = *fi;
	fh = rsb_fop_new_id(fop->fs);
	/* The kernel had it before the crash, and has closed it since: there is nobody to tell. */
	if (rsb_fop_was_answered(fop) && !rsb_handle_get(fop->fs->handles, fh)) {
		fuse_reply_none(rsb_steal(&fop->req));
		rsb_fop_free(fop);
		return NULL;
	}
	r = rsb_handle_open(fop->fs->handles, inode, fh, fi->flags, &handle);
	if (r < 0) {
		rsb_reply_err(fop, r);
		return NULL;
	}
	fop->handle = rsb_handle_ref(handle);
	return fop;
}

static void
send_open(struct rsb_fop *fop)
{
	struct rsb_fs *fs = fop->fs;
	const struct rsb_open_req msg = {
		.node = fop->inode->wire,
		.fh = fop->handle->fh,
		.flags = far_flags(fs, fop->fi.flags),
	};

	if (fop->fi.flags & O_TRUNC) {
		rsb_push_inode(fs, fop->inode);
		rsb_fop_mutate(fop, RSB_OP_open, &msg, on_open);
	} else if (fop->req && (fop->handle->view || rsb_fs_knows(fs, fop->inode) ||
				       rsb_fop_was_answered(fop))) {
		struct rsb_handle *handle = rsb_handle_ref(fop->handle);
		struct fuse_file_info fi = fop->fi;
		fuse_req_t req = rsb_steal(&fop->req);

		fs->stats.hits++;
		handle->unconfirmed = true;
		/* First: killed in between we would never send it, and the kernel had its file. */
		rsb_fop_call(fop, RSB_OP_open, &msg, on_open_late);
		rsb_reply_req_open(req, handle, &fi);
		rsb_handle_unref(fs->handles, handle);
	} else {
		rsb_fop_call(fop, RSB_OP_open, &msg, on_open);
	}
}

/* What is read is the view; what is written goes to the file. */
static void
on_open_ready(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_guard_view *view = r < 0 ? NULL : rsb_guard_view(fop->fs, fop->inode);
	const bool writes_only = (fop->fi.flags & O_ACCMODE) == O_WRONLY;
	bool barred = view && ((view->no_exec && fop->fi.flags & FMODE_EXEC) ||
				      (view->denied && !writes_only));

	(void)rep;
	/* It showed this before a crash, and goes on. */
	if (r >= 0 && fop->handle->view) {
		rsb_guard_view_unref(view);
		send_open(fop);
		return;
	}
	if (barred) {
		r = -EACCES;
	} else if (view && !writes_only) {
		view->n_ref++;
		r = rsb_guardopen_show(fop->fs, fop->handle, view);
	}
	if (r >= 0 && view && !view->changed && !view->denied && rsb_handle_writes(fop->handle) &&
		!fop->inode->wrote)
		rsb_wrote_begin(fop->fs, fop->inode, (struct rsb_bytes){ view->data, view->size },
			RSB_WRITER_PROGRAM);
	rsb_guard_view_unref(view);
	if (r < 0)
		fail_open(fop, r);
	else
		send_open(fop);
}

void
op_open(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi)
{
	struct rsb_inode *inode = rsb_fop_inode(req, nodeid);
	struct rsb_fop *fop;

	if (!inode)
		return;
	fop = begin_open(req, inode, fi);
	if (!fop)
		return;
	/* With ESTALE the kernel asks for the name once more. */
	fop->nameless = rsb_guard_has_lost(fop->fs, inode) && !fop->handle->view &&
			!rsb_fop_was_answered(fop);
	if (fi->flags & O_TRUNC)
		send_open(fop);
	else
		rsb_guard_then_read(fop, inode, on_open_ready);
}

/* fop->inode is the directory. */
static void
on_create(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_fs *fs = fop->fs;
	const struct rsb_entry_rep *entry = rep;
	struct rsb_bytes name = rsb_bytes_str(fop->name);
	struct rsb_handle *handle = NULL;
	struct rsb_inode *inode = NULL;

	if (r >= 0) {
		r = rsb_inode_given(fs->inodes, entry->id, &entry->attr, &inode);
		/* A hostile sidecar may name a directory of the kernel's. */
		if (r >= 0)
			r = rsb_seen_settle(&inode, fop->inode, name);
		if (r >= 0)
			r = rsb_handle_open(fs->handles, inode, fop->fi.fh, fop->fi.flags, &handle);
		if (r < 0)
			rsb_send_post(
				fs->send, RSB_OP_release, &(struct rsb_fh_req){ .fh = fop->fi.fh });
	}
	if (r < 0) {
		release_unknown(fs, fop->fi.fh, r);
		rsb_names_drop(fs->names, fop->inode, name);
		rsb_inode_unref(inode);
		rsb_reply_err(fop, r);
		return;
	}
	rsb_fop_changed(fop, &entry->dir, NULL);
	rsb_fs_name(fs, fop->inode, name, inode, fop->since);
	rsb_fs_learn(fs, inode, &entry->attr, fop->since);
	if (!entry->attr.size)
		began_empty(fop, inode);
	else
		rsb_wrote_drop(inode);
	if (rsb_reply_create(fop, fop->inode, inode, handle) < 0)
		forget_handle(fs, handle);
	rsb_inode_unref(inode);
}

void
op_create(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_inode *dir = rsb_fop_inode(req, parent);
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct rsb_inode *there = NULL;
	struct rsb_create_req msg;
	struct rsb_fop *fop;

	if (!dir)
		return;
	if (strlen(name) > RSB_NAME_MAX) {
		rsb_reply_req_err(req, -ENAMETOOLONG);
		return;
	}
	fop = rsb_fop_new(req);
	if (!fop)
		return;
	rsb_hold_limit(fop);
	fop->inode = rsb_inode_ref(dir);
	fop->fi = *fi;
	fop->fi.fh = rsb_fop_new_id(fs);
	(void)snprintf(fop->name, sizeof(fop->name), "%s", name);
	/* Somebody else may have made it meanwhile; what he wrote comes before a truncation. */
	if (rsb_names_get(fs->names, dir, rsb_bytes_str(name), &there) == 1) {
		rsb_push_inode(fs, there);
		fop->other = rsb_inode_ref(there);
	}
	msg = (struct rsb_create_req){
		.parent = dir->wire,
		.name = rsb_bytes_str(name),
		.id = rsb_fop_new_id(fs),
		.fh = fop->fi.fh,
		.flags = far_flags(fs, fi->flags),
		.mode = mode & 07777,
		.who = rsb_idmap_who(&fs->config.idmap, ctx->uid, ctx->gid),
	};
	rsb_fop_mutate(fop, RSB_OP_create, &msg, on_create);
}

/* ---- flush, release, fsync ---- */

/* Who only read has nothing to lose with the file that could not be opened over there. */
static int
closing_error(const struct rsb_handle *handle)
{
	return rsb_handle_writes(handle) ? handle->broken : 0;
}

static void
on_flushed(struct rsb_fop *fop, int r, const void *rep)
{
	(void)rep;
	if (r >= 0)
		r = closing_error(fop->handle);
	rsb_reply_err(fop, r);
}

static void
on_unlocked(struct rsb_fop *fop, int r, const void *rep)
{
	(void)rep;
	/* close(2) does not fail for a lock; a broken link shows in the data's own error. */
	(void)r;
	rsb_lockset_drop_owner(fop->handle, fop->fi.lock_owner);
	rsb_push_drain(fop, fop->handle, on_flushed);
}

/* A process gives up all its locks of a file with whatever descriptor of it it closes. */
static bool
may_hold_locks(const struct rsb_inode *inode)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &inode->handles) {
		if (rsb_list_entry(pos, struct rsb_handle, of_inode)->posix_locks)
			return true;
	}
	return false;
}

void
op_flush(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_handle *handle = rsb_handle_get(fs->handles, fi->fh);
	struct rsb_unlock_all_req msg;
	struct rsb_fop *fop;
	bool locks;

	(void)nodeid;
	if (!handle) {
		rsb_reply_req_err(req, -EBADF);
		return;
	}
	locks = may_hold_locks(handle->inode);
	rsb_push_handle(fs, handle);
	if (handle->n_done == handle->n_sent && !locks) {
		int r = rsb_handle_take_error(handle);

		rsb_reply_req_err(req, r < 0 ? r : closing_error(handle));
		return;
	}
	/* It could not be killed while it waited; what it wrote goes its way. */
	if (rsb_fop_caller_exits(req)) {
		rsb_reply_req_err(req, 0);
		if (!locks)
			return;
		rsb_send_post(fs->send, RSB_OP_unlock_all,
			&(struct rsb_unlock_all_req){ .fh = handle->fh, .owner = fi->lock_owner });
		rsb_lockset_drop_owner(handle, fi->lock_owner);
		return;
	}
	fop = rsb_fop_new(req);
	if (!fop)
		return;
	fop->handle = rsb_handle_ref(handle);
	fop->fi = *fi;
	if (!locks) {
		rsb_push_drain(fop, handle, on_flushed);
		return;
	}
	msg = (struct rsb_unlock_all_req){ .fh = handle->fh, .owner = fi->lock_owner };
	rsb_fop_call(fop, RSB_OP_unlock_all, &msg, on_unlocked);
}

void
op_release(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_handle *handle = rsb_handle_get(fs->handles, fi->fh);

	(void)nodeid;
	rsb_reply_req_err(req, 0);
	/* Closed: by a process that was killed right then. */
	if (!handle || handle->closed)
		return;
	rsb_push_handle(fs, handle);
	if (rsb_handle_writes(handle))
		rsb_judge_placed(fs, handle->inode);
	if (fi->flock_release && handle->flocks)
		rsb_send_post(fs->send, RSB_OP_unlock_all,
			&(struct rsb_unlock_all_req){ .fh = handle->fh, .owner = fi->lock_owner });
	forget_handle(fs, handle);
}

static void
on_fsync_drained(struct rsb_fop *fop, int r, const void *rep)
{
	(void)rep;
	/* The error of the data itself is the more exact one. */
	rsb_reply_err(fop, r < 0 ? r : fop->error);
}

static void
on_fsync(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_attr_rep *got = rep;

	if (r >= 0)
		rsb_fs_learn(fop->fs, fop->inode, &got->attr, fop->since);
	fop->error = r;
	rsb_push_drain(fop, fop->handle, on_fsync_drained);
}

void
op_fsync(fuse_req_t req, fuse_ino_t nodeid, int data_only, struct fuse_file_info *fi)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_handle *handle = rsb_handle_get(fs->handles, fi->fh);
	struct rsb_fsync_req msg;
	struct rsb_fop *fop;

	(void)nodeid;
	if (!handle || handle->broken) {
		rsb_reply_req_err(req, handle ? handle->broken : -EBADF);
		return;
	}
	fop = rsb_fop_new(req);
	if (!fop)
		return;
	fop->handle = rsb_handle_ref(handle);
	fop->inode = rsb_inode_ref(handle->inode);
	rsb_push_inode(fs, handle->inode);
	msg = (struct rsb_fsync_req){ .fh = handle->fh, .data_only = data_only ? 1 : 0 };
	rsb_fop_call(fop, RSB_OP_fsync, &msg, on_fsync);
}
