/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "dir"
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "fuse/guard.h"
#include "fuse/hold.h"
#include "fuse/ledger.h"
#include "fuse/log.h"
#include "fuse/ops.h"
#include "fuse/reply.h"
#include "fuse/seen.h"
#include "fuse/send.h"
#include "proto/codec.h"
#include "util/log.h"

#define N_DOT 2u /* entries that every snapshot begins with */

/*
 * One listing being loaded into a snapshot, page by page. With the cache on it also teaches us
 * names and attributes, so that a walk needs no look-ups; while commands run nothing of that
 * could be kept.
 */
struct load {
	struct rsb_fs *fs;
	struct rsb_handle *handle; /* referenced */
	uint64_t fh;               /* as handle->snap_fh while this is its listing */
	uint64_t since;            /* of the first page */
	uint64_t page_since;
	bool plus;
};

static void
load_free(struct load *load)
{
	rsb_handle_unref(load->fs->handles, load->handle);
	free(load);
}

void
op_opendir(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_inode *inode = rsb_fop_inode(req, nodeid);
	struct rsb_handle *handle;
	int r;

	if (!inode)
		return;
	r = rsb_handle_open(fs->handles, inode, rsb_fop_new_id(fs), 0, &handle);
	if (r < 0)
		rsb_reply_req_err(req, r);
	else
		rsb_reply_req_open(req, handle, fi);
}

/* ---- answering from the snapshot ---- */

/* The node of an entry, when what we know of it is good to be told. */
static struct rsb_inode *
known_node(struct rsb_fs *fs, struct rsb_inode *dir, struct rsb_bytes name)
{
	struct rsb_inode *inode;

	if (!rsb_cache_on(&fs->cache) || rsb_names_get(fs->names, dir, name, &inode) != 1 ||
		rsb_seen_elsewhere(inode, dir, name))
		return NULL;
	/* One that must be read first is looked up by itself. */
	return rsb_fs_knows(fs, inode) && rsb_guard_ready(fs, inode) ? inode : NULL;
}

/* Adds one entry: its size, 0 when it does not fit. */
static size_t
add_entry(struct rsb_fop *fop, char *buf, size_t room, const struct rsb_dirsnap_entry *entry,
	uint64_t offset)
{
	struct rsb_fs *fs = fop->fs;
	struct fuse_entry_param e = { .ino = 0 };
	struct rsb_inode *inode;
	char name[RSB_NAME_MAX + 1];
	size_t n;

	memcpy(name, entry->name.data, entry->name.size);
	name[entry->name.size] = 0;
	e.attr.st_ino = entry->ino;
	e.attr.st_mode = DTTOIF(entry->type);
	if (!fop->flags) {
		n = fuse_add_direntry(fop->req, buf, room, name, &e.attr, (off_t)offset + 1);
		return n > room ? 0 : n;
	}
	inode = offset < 2 ? NULL : known_node(fs, fop->inode, entry->name);
	if (inode)
		e = rsb_reply_param(fs, fop->inode, entry->name, inode);
	n = fuse_add_direntry_plus(fop->req, buf, room, name, &e, (off_t)offset + 1);
	if (n > room)
		return 0;
	if (inode)
		rsb_inode_looked_up(inode);
	return n;
}

static void
answer(struct rsb_fop *fop)
{
	const struct rsb_dirsnap *snap = fop->handle->snap;
	struct rsb_dirsnap_entry entry;
	rsb_autofree char *buf = malloc(fop->size);
	uint64_t offset = fop->offset;
	size_t used = 0;

	if (!buf) {
		rsb_reply_err(fop, -ENOMEM);
		return;
	}
	while (fop->req && rsb_dirsnap_get(snap, offset, &entry)) {
		size_t n = add_entry(fop, buf + used, fop->size - used, &entry, offset);

		if (!n)
			break;
		used += n;
		offset++;
	}
	if (offset > fop->offset && !fop->handle->snap_used) {
		fop->handle->snap_used = true;
		rsb_log_snap(rsb_ledger_arena(fop->fs->ledger), fop->handle);
	}
	rsb_reply_data(fop, (struct rsb_bytes){ .data = (const uint8_t *)buf, .size = used });
}

/* Answers if there is something to answer. */
static bool
try_answer(struct rsb_fop *fop)
{
	const struct rsb_dirsnap *snap = fop->handle->snap;
	int state = rsb_dirsnap_state(snap);

	if (state < 0) {
		rsb_reply_err(fop, state);
		return true;
	}
	/*
	 * Nothing at all would be the end of the directory. "." and ".." alone would use up the one
	 * readdirplus that the kernel sends unasked, and each name would be looked up afterwards.
	 */
	if (state == 0 && fop->offset + N_DOT >= rsb_dirsnap_count(snap))
		return false;
	answer(fop);
	return true;
}

static void
wake_readers(struct rsb_handle *handle)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	rsb_list_for_each_safe (pos, tmp, &handle->readers)
		(void)try_answer(rsb_list_entry(pos, struct rsb_fop, wait));
}

/* ---- loading ---- */

static void
learn_entry(struct load *load, const struct rsb_dirent *dirent)
{
	struct rsb_fs *fs = load->fs;
	struct rsb_inode *dir = load->handle->inode;
	struct rsb_inode *inode;

	if (rsb_inode_given(fs->inodes, dirent->id, &dirent->attr, &inode) < 0)
		return;
	if (rsb_seen_settle(&inode, dir, dirent->name) < 0) {
		rsb_inode_unref(inode);
		return;
	}
	rsb_fs_name(fs, dir, dirent->name, inode, load->page_since);
	rsb_fs_learn(fs, inode, &dirent->attr, load->page_since);
	rsb_inode_unref(inode);
}

/* What was kept in the hope that it is wanted again gives way to what is wanted now. */
static int
add_name(struct load *load, const struct rsb_dirsnap_entry *entry)
{
	struct rsb_fs *fs = load->fs;
	int r = rsb_dirsnap_add(load->handle->snap, entry);

	if (r != -ENOMEM || !fs->left.snap)
		return r;
	rsb_dirsnap_free(rsb_steal(&fs->left.snap));
	return rsb_dirsnap_add(load->handle->snap, entry);
}

/* 1: the listing is whole, 0: more comes. */
static int
take_page(struct load *load, const struct rsb_readdir_rep *rep, bool wanted)
{
	struct rsb_seq entries = rep->entries;
	struct rsb_dirent dirent;
	int r;

	while ((r = rsb_seq_next(&entries, &rsb_desc_rsb_dirent, &dirent)) > 0) {
		struct rsb_dirsnap_entry entry = {
			.name = dirent.name,
			.ino = dirent.ino ? dirent.ino : 1,
			.type = (uint32_t)dirent.type & 15,
		};

		/* Also when nobody reads any more: each was given and must be returned. */
		if (dirent.id)
			learn_entry(load, &dirent);
		if (!wanted)
			continue;
		r = add_name(load, &entry);
		if (r < 0)
			return r;
	}
	if (r < 0 || rep->done || !wanted)
		return r < 0 ? r : (int)(rep->done != 0);
	return rsb_dirsnap_page(load->handle->snap);
}

/* Every name of the directory is in our table now, if nothing got in between. */
static void
note_listed(struct load *load)
{
	struct rsb_fs *fs = load->fs;
	struct rsb_inode *dir = load->handle->inode;

	if (load->plus && rsb_fs_unchanged(fs, dir, load->since) &&
		rsb_names_count(fs->names) < RSB_NAMES_MAX)
		dir->listed_gen = fs->cache.generation;
}

/* r: 1 with the last page. */
static void
end_load(struct load *load, int r, bool wanted)
{
	struct rsb_handle *handle = load->handle;

	if (r != 1)
		rsb_send_post(
			load->fs->send, RSB_OP_releasedir, &(struct rsb_fh_req){ .fh = load->fh });
	if (wanted) {
		handle->snap_fh = 0;
		if (r == 1)
			note_listed(load);
		rsb_dirsnap_finish(handle->snap, r);
		if (r == 1 && handle->snap_used)
			rsb_log_snap(rsb_ledger_arena(load->fs->ledger), handle);
		wake_readers(handle);
	}
	load_free(load);
}

static int next_page(struct load *load);

static void
on_page(void *arg, int r, const void *rep)
{
	struct load *load = arg;
	struct rsb_handle *handle = load->handle;
	const struct rsb_readdir_rep *page = rep;
	bool wanted = handle->snap_fh == load->fh;

	if (r >= 0) {
		r = take_page(load, page, wanted);
		if (r < 0)
			(void)rsb_warn_r(r, "gave up a listing after %zu names",
				wanted ? rsb_dirsnap_count(handle->snap) : 0);
	}
	if (r >= 0)
		rsb_fs_learn(load->fs, handle->inode, &page->dir, load->page_since);
	if (r == 0 && wanted) {
		if (handle->snap_used)
			rsb_log_snap(rsb_ledger_arena(load->fs->ledger), handle);
		r = next_page(load);
		if (r == 0) {
			wake_readers(handle);
			return;
		}
	}
	end_load(load, r, wanted);
}

static int
next_page(struct load *load)
{
	struct rsb_fs *fs = load->fs;
	struct rsb_readdir_req msg = {
		.node = load->handle->inode->wire,
		.fh = load->fh,
		.plus = load->plus,
		.max = RSB_DIRENTS_MAX,
	};

	if (load->plus)
		msg.first_id = rsb_link_new_ids(fs->link, RSB_DIRENTS_MAX);
	load->page_since = fs->seq;
	return rsb_send_call(fs->send, RSB_OP_readdir, &msg, on_page, load, NULL);
}

/*
 * rm -r opens each directory twice in a row, and the kernel keeps only listings that were read to
 * their end.
 */
static void
leave_snap(struct rsb_fs *fs, struct rsb_handle *handle)
{
	if (!handle->snap || rsb_dirsnap_state(handle->snap) != 1)
		return;
	rsb_dirsnap_free(fs->left.snap);
	fs->left.snap = rsb_steal(&handle->snap);
	fs->left.nodeid = handle->inode->nodeid;
	fs->left.since = handle->snap_since;
}

static bool
take_left_snap(struct rsb_fs *fs, struct rsb_handle *handle)
{
	if (!fs->left.snap || fs->left.nodeid != handle->inode->nodeid ||
		!rsb_fs_unchanged(fs, handle->inode, fs->left.since))
		return false;
	rsb_dirsnap_free(handle->snap);
	rsb_log_drop_snap(rsb_ledger_arena(fs->ledger), handle);
	handle->snap = rsb_steal(&fs->left.snap);
	handle->snap_since = fs->left.since;
	handle->snap_used = false;
	handle->snap_fh = 0;
	return true;
}

/* All of the directory into handle->snap. Negative: nothing was begun. */
static int
load_snap(struct rsb_fs *fs, struct rsb_handle *handle)
{
	struct load *load = rsb_new(struct load);
	int r;

	if (!load)
		return -ENOMEM;
	*load = (struct load){
		.fs = fs,
		.handle = rsb_handle_ref(handle),
		.fh = rsb_link_new_ids(fs->link, 1),
		.since = fs->seq,
		.plus = rsb_cache_on(&fs->cache),
	};
	handle->snap_since = load->since;
	handle->snap_fh = load->fh;
	r = next_page(load);
	if (r < 0) {
		handle->snap_fh = 0;
		rsb_dirsnap_finish(handle->snap, r);
		load_free(load);
	}
	return 0;
}

/* A new snapshot for handle, in place of the old one. */
static int
start_load(struct rsb_fs *fs, struct rsb_handle *handle)
{
	const struct rsb_inode *parent = rsb_inode_by_nodeid(fs->inodes, handle->inode->parent);
	uint64_t ino = handle->inode->attr.ino ? handle->inode->attr.ino : 1;
	struct rsb_dirsnap *snap;
	int r;

	if (take_left_snap(fs, handle))
		return 0;
	r = rsb_dirsnap_new(
		&fs->listings, ino, parent && parent->attr.ino ? parent->attr.ino : ino, &snap);
	if (r < 0)
		return r;
	rsb_dirsnap_free(handle->snap);
	rsb_log_drop_snap(rsb_ledger_arena(fs->ledger), handle);
	handle->snap = snap;
	handle->snap_used = false;
	r = load_snap(fs, handle);
	if (r < 0)
		rsb_dirsnap_free(rsb_steal(&handle->snap));
	return r;
}

static void
read_by(fuse_req_t req, size_t size, off_t offset, struct fuse_file_info *fi, bool plus)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_handle *handle = rsb_handle_get(fs->handles, fi->fh);
	struct rsb_fop *fop;
	int r = 0;

	if (!handle || handle->broken) {
		rsb_reply_req_err(req, handle ? handle->broken : -EBADF);
		return;
	}
	fop = rsb_fop_new(req);
	if (!fop)
		return;
	rsb_hold_limit(fop);
	fop->handle = rsb_handle_ref(handle);
	fop->inode = rsb_inode_ref(handle->inode);
	fop->offset = (uint64_t)offset;
	fop->size = size;
	fop->flags = plus;
	/*
	 * Offset 0 after more was read: rewinddir(3). Others wait in the old one's place. After a
	 * crash it may be the first read itself, whose answer the kernel has: it goes on with that.
	 */
	if (!handle->snap || (offset == 0 && handle->snap_used && !rsb_fop_was_answered(fop)))
		r = start_load(fs, handle);
	/* It was being loaded by a process that died. */
	else if (rsb_dirsnap_state(handle->snap) == 0 && !handle->snap_fh)
		r = load_snap(fs, handle);
	if (r < 0) {
		rsb_reply_err(fop, r);
		return;
	}
	if (!try_answer(fop))
		rsb_list_append(&handle->readers, &fop->wait);
}

void
op_readdir(fuse_req_t req, fuse_ino_t nodeid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	(void)nodeid;
	read_by(req, size, offset, fi, false);
}

void
op_readdirplus(
	fuse_req_t req, fuse_ino_t nodeid, size_t size, off_t offset, struct fuse_file_info *fi)
{
	(void)nodeid;
	read_by(req, size, offset, fi, true);
}

void
op_releasedir(fuse_req_t req, fuse_ino_t nodeid, struct fuse_file_info *fi)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_handle *handle = rsb_handle_get(fs->handles, fi->fh);

	(void)nodeid;
	rsb_reply_req_err(req, 0);
	if (!handle || handle->closed)
		return;
	/* A listing under way sees that it is not wanted any more. */
	handle->snap_fh = 0;
	rsb_handle_set_closed(handle);
	leave_snap(fs, handle);
	rsb_handle_unref(fs->handles, handle);
}

void
op_dir_again(struct rsb_fs *fs)
{
	struct rsb_handle *handle;
	size_t cursor = 0;
	int r;

	while ((handle = rsb_handle_next(fs->handles, &cursor))) {
		if (!handle->snap_fh)
			continue;
		r = rsb_dirsnap_again(handle->snap);
		if (r >= 0)
			continue;
		handle->snap_fh = 0;
		rsb_dirsnap_finish(handle->snap, r);
		wake_readers(handle);
	}
}

static void
on_fsyncdir(struct rsb_fop *fop, int r, const void *rep)
{
	(void)rep;
	rsb_reply_err(fop, r);
}

void
op_fsyncdir(fuse_req_t req, fuse_ino_t nodeid, int data_only, struct fuse_file_info *fi)
{
	struct rsb_inode *inode = rsb_fop_inode(req, nodeid);
	struct rsb_fop *fop;

	(void)data_only;
	(void)fi;
	if (!inode)
		return;
	fop = rsb_fop_new(req);
	if (!fop)
		return;
	rsb_hold_limit(fop);
	fop->inode = rsb_inode_ref(inode);
	rsb_fop_call(fop, RSB_OP_fsyncdir, &(struct rsb_fsyncdir_req){ .node = inode->wire },
		on_fsyncdir);
}
