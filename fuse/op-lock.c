/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "fuse/lockset.h"
#include "fuse/ops.h"
#include "fuse/push.h"
#include "fuse/reply.h"
#include "fuse/send.h"

/* Data written before comes before the lock is had or given up. NULL: answered. */
static struct rsb_fop *
begin(fuse_req_t req, const struct fuse_file_info *fi)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_handle *handle = rsb_handle_get(fs->handles, fi->fh);
	struct rsb_fop *fop;

	if (!handle || handle->broken) {
		rsb_reply_req_err(req, handle ? handle->broken : -EBADF);
		return NULL;
	}
	fop = rsb_fop_new(req);
	if (!fop)
		return NULL;
	fop->handle = rsb_handle_ref(handle);
	fop->fi = *fi;
	rsb_push_inode(fs, handle->inode);
	return fop;
}

static struct rsb_lock_req
posix_req(const struct fuse_file_info *fi, const struct flock *lock)
{
	return (struct rsb_lock_req){
		.fh = fi->fh,
		.owner = fi->lock_owner,
		.kind = RSB_LOCK_POSIX,
		.type = (uint64_t)lock->l_type,
		.start = (uint64_t)lock->l_start,
		.length = (uint64_t)lock->l_len,
		.pid = lock->l_pid > 0 ? (uint64_t)lock->l_pid : 0,
	};
}

static void
on_getlk(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_getlk_rep *got = rep;
	struct flock lock = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

	if (r < 0) {
		rsb_reply_err(fop, r);
		return;
	}
	if (got->type == F_RDLCK || got->type == F_WRLCK) {
		/* Of a lock that came through here; processes there have other numbers: 0. */
		lock.l_pid = (pid_t)rsb_min(got->pid, (uint64_t)INT32_MAX);
		lock.l_type = (short)got->type;
		lock.l_start = (off_t)(got->start & INT64_MAX);
		lock.l_len = (off_t)(got->length & INT64_MAX);
	}
	if (fop->req)
		(void)fuse_reply_lock(fop->req, &lock);
	rsb_fop_free(fop);
}

void
op_getlk(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi, struct flock *lock)
{
	struct rsb_fop *fop = begin(req, fi);
	struct rsb_lock_req msg;

	(void)nodeid;
	if (!fop)
		return;
	msg = posix_req(fi, lock);
	rsb_fop_call(fop, RSB_OP_getlk, &msg, on_getlk);
}

static void on_locked(struct rsb_fop *fop, int r, const void *rep);

static void
send_lock(struct rsb_fop *fop, const struct rsb_lock_req *msg)
{
	fop->lock_round = fop->fs->lock_round;
	rsb_fop_call(fop, RSB_OP_lock, msg, on_locked);
}

/*
 * The sidecar has lost its locks since it was asked for this one: whether it was had by then, and
 * is gone, or was had after it, the answer does not say. Its caller knows of none yet.
 */
static bool
is_void(const struct rsb_fop *fop, int r, const struct rsb_lock_req *msg)
{
	return fop->lock_round != fop->fs->lock_round && msg->type != F_UNLCK && fop->req &&
	       !fop->handle->broken && (r >= 0 || (r == -EAGAIN && fop->lock_wait));
}

/* A lock that came too late for its caller is given back: nobody would ever do that. */
static void
on_locked(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_unlock_all_req msg = { .fh = fop->handle->fh, .owner = fop->fi.lock_owner };
	struct rsb_lock_req lock;

	(void)rep;
	memcpy(&lock, fop->data, sizeof(lock));
	if (is_void(fop, r, &lock)) {
		send_lock(fop, &lock);
		return;
	}
	if (r >= 0 && fop->handle->broken)
		r = fop->handle->broken;
	if (r >= 0 && !fop->req && fop->lock_wait)
		rsb_send_post(fop->fs->send, RSB_OP_unlock_all, &msg);
	else if (r >= 0)
		rsb_lockset_note(fop->handle, &lock);
	rsb_reply_err(fop, r);
}

static void
lock_by(struct rsb_fop *fop, struct rsb_lock_req *msg, bool wait)
{
	msg->wait = wait;
	fop->lock_wait = wait && msg->type != F_UNLCK;
	if (msg->type != F_UNLCK) {
		rsb_handle_set_locks(
			fop->handle, msg->kind == RSB_LOCK_POSIX, msg->kind != RSB_LOCK_POSIX);
	}
	fop->data = malloc(sizeof(*msg));
	if (!fop->data) {
		rsb_reply_err(fop, -ENOMEM);
		return;
	}
	memcpy(fop->data, msg, sizeof(*msg));
	send_lock(fop, msg);
}

void
op_setlk(
	fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi, struct flock *lock, int sleep)
{
	struct rsb_fop *fop = begin(req, fi);
	struct rsb_lock_req msg;

	(void)nodeid;
	if (!fop)
		return;
	msg = posix_req(fi, lock);
	lock_by(fop, &msg, sleep);
}

void
op_flock(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi, int op)
{
	struct rsb_fop *fop = begin(req, fi);
	struct rsb_lock_req msg;

	(void)nodeid;
	if (!fop)
		return;
	msg = (struct rsb_lock_req){
		.fh = fi->fh,
		.owner = fi->lock_owner,
		.kind = RSB_LOCK_FLOCK,
		.type = F_UNLCK,
	};
	if (op & LOCK_SH)
		msg.type = F_RDLCK;
	else if (op & LOCK_EX)
		msg.type = F_WRLCK;
	lock_by(fop, &msg, !(op & LOCK_NB));
}
