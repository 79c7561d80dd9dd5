/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "resend"

#include "fuse/resend.h"

#include <errno.h>
#include <stdlib.h>

#include "fuse/ledger.h"
#include "fuse/log.h"
#include "fuse/push.h"
#include "fuse/send.h"
#include "proto/codec.h"
#include "util/log.h"

/* A call that nobody waits for. */
struct orphan {
	struct rsb_fs *fs;
	uint32_t op;
	uint64_t fh;      /* that it opens; 0: none */
	bool was_counted; /* its gifts were taken, so its other effects were too */
};

union request {
	struct rsb_open_req open;
	struct rsb_create_req create;
	struct rsb_write_req write;
	struct rsb_readdir_req readdir;
	uint8_t bytes[2048];
};

static void
give_back_entries(struct rsb_fs *fs, const struct rsb_readdir_rep *rep)
{
	struct rsb_seq entries = rep->entries;
	struct rsb_dirent dirent;

	while (rsb_seq_next(&entries, &rsb_desc_rsb_dirent, &dirent) > 0) {
		if (dirent.id)
			rsb_send_forget(fs->send, dirent.id, 1);
	}
}

static void
give_back(const struct orphan *orphan, const void *rep)
{
	struct rsb_fs *fs = orphan->fs;
	const struct rsb_entry_rep *entry = rep;

	switch (orphan->op) {
	case RSB_OP_lookup:
	case RSB_OP_mknod:
	case RSB_OP_mkdir:
	case RSB_OP_symlink:
	case RSB_OP_link:
	case RSB_OP_create:
		rsb_send_forget(fs->send, entry->id, 1);
		break;
	case RSB_OP_readdir:
		give_back_entries(fs, rep);
		break;
	default:
		break;
	}
}

static void
on_orphan(void *arg, int r, const void *rep)
{
	struct orphan *orphan = arg;
	struct rsb_fs *fs = orphan->fs;

	if (r >= 0 && !orphan->was_counted)
		give_back(orphan, rep);
	if (r >= 0 && orphan->fh && !rsb_handle_get(fs->handles, orphan->fh))
		rsb_send_post(fs->send, RSB_OP_release, &(struct rsb_fh_req){ .fh = orphan->fh });
	/* A listing is given up by whoever began it. */
	if (orphan->op == RSB_OP_readdir)
		rsb_send_post(
			fs->send, RSB_OP_releasedir, &(struct rsb_fh_req){ .fh = orphan->fh });
	free(orphan);
}

static struct orphan *
orphan_new(struct rsb_fs *fs, const struct rsb_shared_call *shared, const union request *req)
{
	struct orphan *orphan = rsb_new(struct orphan);

	if (!orphan)
		return NULL;
	orphan->fs = fs;
	orphan->op = shared->op;
	orphan->was_counted = shared->n_counted;
	if (shared->op == RSB_OP_open || shared->op == RSB_OP_reopen)
		orphan->fh = req->open.fh;
	else if (shared->op == RSB_OP_create)
		orphan->fh = req->create.fh;
	else if (shared->op == RSB_OP_readdir)
		orphan->fh = req->readdir.fh;
	return orphan;
}

/* A write goes on as one of its handle. */
static int
claim_write(struct rsb_fs *fs, uint64_t serial, const struct rsb_shared_call *shared,
	const struct rsb_write_req *req)
{
	struct rsb_handle *handle = rsb_handle_get(fs->handles, req->fh);

	if (!handle)
		return 0;
	if (shared->mark) {
		size_t before = handle->wbuf.size;
		int r = rsb_log_covered(rsb_ledger_arena(fs->ledger), handle, shared->mark);

		if (r < 0)
			return r;
		fs->unsent -= before - handle->wbuf.size;
		if (!handle->wbuf.size && handle->inode->dirty == handle)
			handle->inode->dirty = NULL;
	}
	return rsb_push_again(fs, handle, req, serial);
}

static int
again(struct rsb_fs *fs, struct rsb_shared_call *shared, bool lost)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = RSB_MESSAGE_MAX };
	struct orphan *orphan;
	union request req;
	uint64_t serial;
	int r;

	r = rsb_arena_read(rsb_ledger_arena(fs->ledger), &shared->req, &buf);
	if (r >= 0 && rsb_ops[shared->op].req->size > sizeof(req))
		r = -EMSGSIZE;
	if (r >= 0)
		r = rsb_codec_decode(rsb_ops[shared->op].req, rsb_buf_view(&buf), &req);
	if (r < 0)
		return r;
	orphan = orphan_new(fs, shared, &req);
	if (!orphan)
		return -ENOMEM;
	r = rsb_send_again(fs->send, shared, lost, on_orphan, orphan, &serial);
	if (r >= 0 && shared->op == RSB_OP_write)
		r = claim_write(fs, serial, shared, &req.write);
	return r;
}

static int
by_number(const void *a, const void *b)
{
	const struct rsb_shared_call *const *x = a;
	const struct rsb_shared_call *const *y = b;

	return (*x)->call < (*y)->call ? -1 : (*x)->call > (*y)->call;
}

/* The mutations, or the others. */
static int
all_again(struct rsb_fs *fs, struct rsb_shared_call *const *calls, size_t n, bool writes, bool lost)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		if (!(rsb_ops[calls[i]->op].flags & RSB_OP_WRITES) == !writes)
			r = again(fs, calls[i], lost);
	}
	return r;
}

int
rsb_resend_calls(struct rsb_fs *fs, bool lost)
{
	struct rsb_shared *shared = fs->shared;
	uint32_t n_ever = shared->head.n_call;
	rsb_autofree struct rsb_shared_call **calls =
		rsb_new_array(struct rsb_shared_call *, n_ever ? n_ever : 1);
	size_t n = 0;
	int r = 0;

	if (!calls)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_ever; i++) {
		if (shared->calls[i].state)
			calls[n++] = &shared->calls[i];
	}
	/* Numbers were given in the order in which they came to the link. */
	qsort(calls, n, sizeof(struct rsb_shared_call *), by_number);
	r = all_again(fs, calls, n, true, lost);
	/*
	 * What waits for mutations waits for all; so the count over there goes to where ours is,
	 * past those that were given up here and may never have arrived.
	 */
	if (r >= 0 && !lost)
		rsb_send_post(fs->send, RSB_OP_skip, NULL);
	if (r >= 0)
		r = all_again(fs, calls, n, false, lost);
	rsb_dbg("%zu calls of the process before are made again", n);
	return r;
}
