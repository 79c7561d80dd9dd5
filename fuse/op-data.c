/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fuse/ahead.h"
#include "fuse/guardload.h"
#include "fuse/guardopen.h"
#include "fuse/ledger.h"
#include "fuse/log.h"
#include "fuse/ops.h"
#include "fuse/push.h"
#include "fuse/reply.h"
#include "fuse/send.h"
#include "fuse/wrote.h"

/* The handle, if it is of use; NULL: answered. */
static struct rsb_handle *
usable(fuse_req_t req, uint64_t fh)
{
	struct rsb_handle *handle = rsb_handle_get(rsb_fop_fs(req)->handles, fh);

	if (handle && !handle->broken)
		return handle;
	rsb_reply_req_err(req, handle ? handle->broken : -EBADF);
	return NULL;
}

static struct rsb_fop *
begin(fuse_req_t req, struct rsb_handle *handle)
{
	struct rsb_fop *fop = rsb_fop_new(req);

	if (!fop)
		return NULL;
	fop->handle = rsb_handle_ref(handle);
	fop->inode = rsb_inode_ref(handle->inode);
	return fop;
}

/* ---- read ---- */

/* One read message of several that make the answer. */
struct part {
	struct rsb_fop *fop;
	size_t at; /* in fop->data */
	size_t size;
};

/* All parts are there. fop->size is where the first one that fell short ended. */
static void
finish_read(struct rsb_fop *fop)
{
	int r = fop->error;

	/* The open that was not waited for failed: that says more than EBADF. */
	if (r < 0 && fop->handle->broken)
		r = fop->handle->broken;
	if (r < 0)
		rsb_reply_err(fop, r);
	else
		rsb_reply_data(fop, (struct rsb_bytes){ .data = fop->data, .size = fop->size });
}

static void
on_read(void *arg, int r, const void *rep)
{
	struct part *part = arg;
	struct rsb_fop *fop = part->fop;
	const struct rsb_read_rep *got = rep;

	if (r < 0) {
		if (!fop->error)
			fop->error = r;
	} else {
		size_t n = rsb_min(got->data.size, part->size);

		if (n)
			memcpy(fop->data + part->at, got->data.data, n);
		/* Short is the end of the file: what lies beyond in later parts is none. */
		if (n < part->size)
			fop->size = rsb_min(fop->size, part->at + n);
	}
	free(part);
	if (--fop->n_call == 0)
		finish_read(fop);
}

static int
send_part(struct rsb_fop *fop, size_t at, size_t size)
{
	struct part *part = rsb_new(struct part);
	struct rsb_read_req msg = {
		.fh = fop->handle->fh,
		.offset = fop->offset + at,
		.size = size,
	};
	int r;

	if (!part)
		return -ENOMEM;
	*part = (struct part){ .fop = fop, .at = at, .size = size };
	r = rsb_send_call(fop->fs->send, RSB_OP_read, &msg, on_read, part, NULL);
	if (r < 0) {
		free(part);
		return r;
	}
	fop->n_call++;
	return 0;
}

static void
reply_view(struct rsb_fop *fop, const struct rsb_guard_view *view)
{
	struct rsb_bytes data = { .size = 0 };

	if (fop->offset < view->size) {
		data.data = view->data + fop->offset;
		data.size = rsb_min(fop->size, view->size - (size_t)fop->offset);
	}
	rsb_reply_data(fop, data);
}

/* It was opened before it was known for what it is. */
static void
on_read_ready(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_guard_view *view = r < 0 ? NULL : rsb_guard_view(fop->fs, fop->inode);

	(void)rep;
	if (r >= 0 && !view)
		r = -EIO;
	else if (view && view->denied)
		r = -EACCES;
	if (r < 0)
		rsb_guard_view_unref(view);
	else
		r = rsb_guardopen_show(fop->fs, fop->handle, view);
	if (r < 0)
		rsb_reply_err(fop, r);
	else
		reply_view(fop, fop->handle->view);
}

void
op_read(fuse_req_t req, fuse_ino_t nodeid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct rsb_handle *handle = usable(req, fi->fh);
	struct rsb_fop *fop;
	int r = 0;

	(void)nodeid;
	if (!handle)
		return;
	fop = begin(req, handle);
	if (!fop)
		return;
	fop->offset = (uint64_t)offset;
	fop->size = size;
	if (handle->view) {
		reply_view(fop, handle->view);
		return;
	}
	if (!rsb_handle_writes(handle) && rsb_guard_watches(fop->fs, handle->inode)) {
		rsb_guard_then_read(fop, handle->inode, on_read_ready);
		return;
	}
	/* It may be for a page, which others have mapped as a page of what they are shown. */
	if (rsb_handle_writes(handle) && !rsb_guardopen_may_read(handle)) {
		rsb_reply_err(fop, -EBUSY);
		return;
	}
	rsb_push_inode(fop->fs, handle->inode);
	fop->data = malloc(size ? size : 1);
	if (!fop->data) {
		rsb_reply_err(fop, -ENOMEM);
		return;
	}
	if (rsb_ahead_read(fop))
		return;
	for (size_t at = 0; at < size && r >= 0; at += RSB_IO_MAX)
		r = send_part(fop, at, rsb_min(size - at, (size_t)RSB_IO_MAX));
	if (r < 0)
		fop->error = r;
	if (!fop->n_call)
		finish_read(fop);
}

/* ---- write ---- */

static void
on_room(struct rsb_fop *fop, int r, const void *rep)
{
	(void)r;
	(void)rep;
	rsb_reply_written(fop, fop->size);
}

static void
on_through(struct rsb_fop *fop, int r, const void *rep)
{
	(void)rep;
	if (r < 0)
		rsb_reply_err(fop, r);
	else
		rsb_reply_written(fop, fop->size);
}

static bool
writes_through(const struct rsb_fs *fs, const struct rsb_handle *handle)
{
	return fs->config.sync || handle->flags & (O_SYNC | O_DSYNC);
}

/*
 * Takes the data into the buffers, or (pages written back) sends it. After a crash: only what the
 * process before had not taken; of a request that waits nothing is left, and data is not there.
 */
static int
take_data(struct rsb_fs *fs, struct rsb_handle *handle, uint64_t offset, struct rsb_bytes data,
	bool writepage)
{
	struct rsb_shared_flight *hand = fs->hand;
	size_t done;

	if (rsb_fop_is_old(fs))
		return 0;
	if (!hand->puts) {
		hand->put_from = handle->put;
		rsb_shared_publish(&hand->puts, 1);
	}
	done = (size_t)rsb_min(handle->put - hand->put_from, (uint64_t)data.size);
	offset += done;
	data.data += done;
	data.size -= done;
	if (!writepage)
		return rsb_push_write(fs, handle, offset, data);
	rsb_push_through(fs, handle, offset, data);
	return 0;
}

void
op_write(fuse_req_t req, fuse_ino_t nodeid, const char *data, size_t size, off_t offset,
	struct fuse_file_info *fi)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_handle *handle = usable(req, fi->fh);
	struct rsb_bytes bytes = { .data = (const uint8_t *)data, .size = size };
	struct rsb_fop *fop;
	int r;

	(void)nodeid;
	if (!handle)
		return;
	if (fs->kernel_kill)
		rsb_handle_set_kill(handle, true);
	r = fi->writepage ? 0 : rsb_handle_show_error(handle);
	/* What was opened to be changed shows what it is from here on. */
	rsb_log_set_view(rsb_ledger_arena(fs->ledger), handle, NULL);
	if (fi->writepage)
		rsb_wrote_drop(handle->inode);
	if (r >= 0)
		r = take_data(fs, handle, (uint64_t)offset, bytes, fi->writepage);
	if (r >= 0 && !fi->writepage && !rsb_fop_is_old(fs) && handle->inode->wrote)
		rsb_wrote_put(fs, handle->inode, (uint64_t)offset, bytes, handle->wbuf.append,
			rsb_writer_of(fuse_req_ctx(req)->pid, handle->inode, handle->flags));
	if (r < 0) {
		rsb_reply_req_err(req, r);
		return;
	}
	if (!fi->writepage && !writes_through(fs, handle) && fs->sent < RSB_FS_SENT_MAX) {
		(void)fuse_reply_write(req, size);
		return;
	}
	fop = begin(req, handle);
	if (!fop)
		return;
	fop->size = size;
	if (fi->writepage) {
		rsb_push_drain(fop, handle, on_through);
	} else if (writes_through(fs, handle)) {
		rsb_push_handle(fs, handle);
		rsb_push_drain(fop, handle, on_through);
	} else {
		rsb_push_room(fop, on_room);
	}
}

/* ---- fallocate, lseek, copy_file_range ---- */

static void
on_fallocate(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_attr_rep *got = rep;

	if (r >= 0)
		rsb_fop_changed(fop, &got->attr, NULL);
	rsb_reply_err(fop, r);
}

void
op_fallocate(fuse_req_t req, fuse_ino_t nodeid, int mode, off_t offset, off_t length,
	struct fuse_file_info *fi)
{
	struct rsb_handle *handle = usable(req, fi->fh);
	struct rsb_fallocate_req msg;
	struct rsb_fop *fop;

	(void)nodeid;
	if (!handle)
		return;
	fop = begin(req, handle);
	if (!fop)
		return;
	rsb_push_inode(fop->fs, handle->inode);
	rsb_wrote_drop(handle->inode);
	msg = (struct rsb_fallocate_req){
		.fh = handle->fh,
		.mode = (uint64_t)(unsigned int)mode,
		.offset = (uint64_t)offset,
		.length = (uint64_t)length,
	};
	rsb_fop_mutate(fop, RSB_OP_fallocate, &msg, on_fallocate);
}

/* It is data from its start to its end. */
static void
lseek_view(fuse_req_t req, const struct rsb_guard_view *view, off_t offset, int whence)
{
	if (offset < 0 || (uint64_t)offset >= view->size)
		rsb_reply_req_err(req, -ENXIO);
	else
		(void)fuse_reply_lseek(req, whence == SEEK_DATA ? offset : (off_t)view->size);
}

static void
on_lseek(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_lseek_rep *got = rep;

	if (r < 0 || got->offset > INT64_MAX) {
		rsb_reply_err(fop, r < 0 ? r : -EIO);
		return;
	}
	if (fop->req)
		(void)fuse_reply_lseek(fop->req, (off_t)got->offset);
	rsb_fop_free(fop);
}

void
op_lseek(fuse_req_t req, fuse_ino_t nodeid, off_t offset, int whence, struct fuse_file_info *fi)
{
	struct rsb_handle *handle = usable(req, fi->fh);
	struct rsb_lseek_req msg;
	struct rsb_fop *fop;

	(void)nodeid;
	if (!handle)
		return;
	if (handle->view) {
		lseek_view(req, handle->view, offset, whence);
		return;
	}
	fop = begin(req, handle);
	if (!fop)
		return;
	rsb_push_inode(fop->fs, handle->inode);
	msg = (struct rsb_lseek_req){
		.fh = handle->fh,
		.offset = (uint64_t)offset,
		.whence = (uint64_t)(unsigned int)whence,
	};
	rsb_fop_call(fop, RSB_OP_lseek, &msg, on_lseek);
}

static void
on_copy(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_copy_rep *got = rep;

	if (r < 0) {
		rsb_reply_err(fop, r);
		return;
	}
	rsb_fop_changed(fop, &got->attr, NULL);
	rsb_reply_written(fop, rsb_min((size_t)got->length, fop->size));
}

void
op_copy_file_range(fuse_req_t req, fuse_ino_t nodeid_in, off_t off_in, struct fuse_file_info *fi_in,
	fuse_ino_t nodeid_out, off_t off_out, struct fuse_file_info *fi_out, size_t length,
	int flags)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_handle *in = usable(req, fi_in->fh);
	struct rsb_handle *out = in ? usable(req, fi_out->fh) : NULL;
	struct rsb_copy_req msg;
	struct rsb_fop *fop;

	(void)nodeid_in;
	(void)nodeid_out;
	(void)flags;
	if (!out)
		return;
	/* The kernel copies what is read then. */
	if (in->view) {
		rsb_reply_req_err(req, -EOPNOTSUPP);
		return;
	}
	fop = begin(req, out);
	if (!fop)
		return;
	rsb_push_inode(fs, in->inode);
	rsb_push_inode(fs, out->inode);
	rsb_wrote_drop(out->inode);
	fop->size = length;
	msg = (struct rsb_copy_req){
		.fh_in = in->fh,
		.off_in = (uint64_t)off_in,
		.fh_out = out->fh,
		.off_out = (uint64_t)off_out,
		.length = length,
	};
	rsb_fop_mutate(fop, RSB_OP_copy, &msg, on_copy);
}
