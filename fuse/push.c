/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "push"

#include "fuse/push.h"

#include <errno.h>

#include "fuse/hold.h"
#include "fuse/ledger.h"
#include "fuse/log.h"
#include "fuse/notify.h"
#include "fuse/send.h"
#include "fuse/wrote.h"
#include "util/log.h"

/* One write message under way. */
struct piece {
	struct rsb_fs *fs;
	struct rsb_handle *handle; /* referenced */
	uint64_t offset;
	size_t size;
	uint64_t since;
	bool append;
};

static void
wake_drains(struct rsb_handle *handle)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	rsb_list_for_each_safe (pos, tmp, &handle->drains) {
		struct rsb_fop *fop = rsb_list_entry(pos, struct rsb_fop, wait);

		if (fop->target > handle->n_done)
			continue;
		rsb_list_remove(&fop->wait);
		fop->fn(fop, rsb_handle_take_error(handle), NULL);
	}
}

static void
wake_writers(struct rsb_fs *fs)
{
	while (fs->sent < RSB_FS_SENT_MAX && !rsb_list_empty(&fs->writers)) {
		struct rsb_fop *fop = rsb_list_entry(fs->writers.next, struct rsb_fop, wait);

		rsb_list_remove(&fop->wait);
		fop->fn(fop, 0, NULL);
	}
}

static void
note_error(struct rsb_fs *fs, struct rsb_handle *handle, int r)
{
	if (!handle->error)
		rsb_handle_set_error(handle, r);
	rsb_wrote_drop(handle->inode);
	if (!handle->closed)
		return;
	fs->stats.lost_writes++;
	rsb_warn_r(r, "data written to '%s' after its last close is lost",
		handle->inode->name ? handle->inode->name : "a file");
}

/* What the far side says about where an append went may show that the kernel's page is wrong. */
static void
check_append(const struct piece *piece, const struct rsb_write_rep *rep)
{
	if (piece->append && rep->offset != piece->offset && piece->fs->notify)
		(void)rsb_notify_inode(piece->fs->notify, piece->handle->inode->nodeid, true);
}

static void
on_written(void *arg, int r, const void *rep)
{
	struct piece *piece = arg;
	struct rsb_fs *fs = piece->fs;
	struct rsb_handle *handle = piece->handle;
	const struct rsb_write_rep *written = rep;

	fs->sent -= piece->size;
	handle->n_done++;
	rsb_fs_change_end(fs, handle->inode, r < 0 ? NULL : &written->attr, piece->since);
	if (r == -ENOTCONN)
		rsb_hold_unknown_data(fs, handle->inode);
	if (r == -EBADF && handle->broken) {
		r = handle->broken;
		if (!handle->error)
			rsb_hold_note_lost(fs, handle->inode, RSB_HOLD_UNSENT);
	}
	if (r < 0)
		note_error(fs, handle, r);
	else
		check_append(piece, written);
	free(piece);
	wake_drains(handle);
	wake_writers(fs);
	rsb_handle_unref(fs->handles, handle);
}

/* Sends one piece; a failure is the handle's. */
/* mark: as in struct rsb_shared_call. */
static void
send_piece(struct rsb_fs *fs, struct rsb_handle *handle, uint64_t offset, struct rsb_bytes data,
	bool append, uint64_t mark)
{
	struct piece *piece = rsb_new(struct piece);
	struct rsb_write_req req = { .fh = handle->fh, .offset = offset, .data = data };
	int r;

	if (!piece) {
		note_error(fs, handle, -ENOMEM);
		return;
	}
	*piece = (struct piece){
		.fs = fs,
		.handle = handle,
		.offset = offset,
		.size = data.size,
		.append = append,
	};
	if (append)
		req.flags |= RSB_WRITE_APPEND;
	if (handle->kill_suidgid)
		req.flags |= RSB_WRITE_KILL_SUIDGID;
	piece->since = rsb_fs_change_begin(fs, handle->inode);
	r = rsb_send_write(fs->send, &req, mark, on_written, piece);
	rsb_handle_set_kill(handle, false);
	if (r < 0) {
		rsb_fs_change_end(fs, handle->inode, NULL, piece->since);
		note_error(fs, handle, r);
		free(piece);
		return;
	}
	(void)rsb_handle_ref(handle);
	handle->n_sent++;
	fs->sent += data.size;
}

int
rsb_push_again(struct rsb_fs *fs, struct rsb_handle *handle, const struct rsb_write_req *req,
	uint64_t serial)
{
	struct piece *piece = rsb_new(struct piece);

	if (!piece)
		return -ENOMEM;
	*piece = (struct piece){
		.fs = fs,
		.handle = rsb_handle_ref(handle),
		.offset = req->offset,
		.size = req->data.size,
		.since = rsb_fs_change_begin(fs, handle->inode),
		.append = req->flags & RSB_WRITE_APPEND,
	};
	handle->n_sent++;
	fs->sent += piece->size;
	rsb_send_claim(fs->send, serial, on_written, piece);
	return 0;
}

void
rsb_push_handle(struct rsb_fs *fs, struct rsb_handle *handle)
{
	struct rsb_bytes data;
	uint64_t offset;

	if (handle->inode->dirty == handle)
		handle->inode->dirty = NULL;
	if (!handle->wbuf.size)
		return;
	while (rsb_wbuf_next(&handle->wbuf, &offset, &data)) {
		bool last = data.size == handle->wbuf.size;

		send_piece(fs, handle, offset, data, handle->wbuf.append, last ? handle->put : 0);
		rsb_wbuf_sent(&handle->wbuf, data.size);
		fs->unsent -= data.size;
	}
	rsb_log_cut(rsb_ledger_arena(fs->ledger), handle);
}

void
rsb_push_inode(struct rsb_fs *fs, struct rsb_inode *inode)
{
	if (inode->dirty)
		rsb_push_handle(fs, inode->dirty);
}

void
rsb_push_all(struct rsb_fs *fs)
{
	struct rsb_handle *handle;
	size_t cursor = 0;

	while ((handle = rsb_handle_next(fs->handles, &cursor)))
		rsb_push_handle(fs, handle);
}

/* Makes room: whole messages first, so that a stream is cut into as few as can be. */
static void
push_some(struct rsb_fs *fs, struct rsb_handle *handle)
{
	struct rsb_bytes data;
	uint64_t offset;
	bool sent = false;

	while (rsb_wbuf_next(&handle->wbuf, &offset, &data) && data.size == RSB_IO_MAX) {
		/* Of what is appended it is all there is: killed now, it is not to go twice. */
		bool last = data.size == handle->wbuf.size;

		send_piece(fs, handle, offset, data, handle->wbuf.append, last ? handle->put : 0);
		rsb_wbuf_sent(&handle->wbuf, data.size);
		fs->unsent -= data.size;
		sent = true;
	}
	if (sent)
		rsb_log_cut(rsb_ledger_arena(fs->ledger), handle);
	if (!sent || !handle->wbuf.size)
		rsb_push_handle(fs, handle);
}

int
rsb_push_write(struct rsb_fs *fs, struct rsb_handle *handle, uint64_t offset, struct rsb_bytes data)
{
	struct rsb_inode *inode = handle->inode;

	if (inode->dirty != handle)
		rsb_push_inode(fs, inode);
	while (data.size) {
		size_t before = handle->wbuf.size;
		int n;
		int r = 0;

		n = rsb_wbuf_put(&handle->wbuf, offset, data);
		fs->unsent += handle->wbuf.size - before;
		if (n > 0)
			r = rsb_log_put(rsb_ledger_arena(fs->ledger), handle, offset,
				(struct rsb_bytes){ .data = data.data, .size = (size_t)n });
		if (n < 0 || r < 0)
			return n < 0 ? n : r;
		if (n == 0) {
			push_some(fs, handle);
			continue;
		}
		inode->dirty = handle;
		inode->attr_gen = 0;
		offset += (uint64_t)n;
		data.data += n;
		data.size -= (size_t)n;
	}
	if (rsb_wbuf_full(&handle->wbuf) || fs->unsent > RSB_FS_UNSENT_MAX)
		push_some(fs, handle);
	return 0;
}

void
rsb_push_through(
	struct rsb_fs *fs, struct rsb_handle *handle, uint64_t offset, struct rsb_bytes data)
{
	rsb_push_inode(fs, handle->inode);
	while (data.size) {
		struct rsb_bytes part = data;

		part.size = rsb_min(part.size, (size_t)RSB_IO_MAX);
		handle->put += part.size;
		send_piece(fs, handle, offset, part, false, handle->put);
		rsb_log_cut(rsb_ledger_arena(fs->ledger), handle);
		offset += part.size;
		data.data += part.size;
		data.size -= part.size;
	}
}

void
rsb_push_drain(struct rsb_fop *fop, struct rsb_handle *handle, rsb_fop_fn fn)
{
	fop->fn = fn;
	fop->target = handle->n_sent;
	if (handle->n_done >= fop->target)
		fn(fop, rsb_handle_take_error(handle), NULL);
	else
		rsb_list_append(&handle->drains, &fop->wait);
}

void
rsb_push_room(struct rsb_fop *fop, rsb_fop_fn fn)
{
	fop->fn = fn;
	if (fop->fs->sent < RSB_FS_SENT_MAX)
		fn(fop, 0, NULL);
	else
		rsb_list_append(&fop->fs->writers, &fop->wait);
}
