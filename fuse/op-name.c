/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fuse/alias.h"
#include "fuse/giveback.h"
#include "fuse/guardload.h"
#include "fuse/hold.h"
#include "fuse/judge.h"
#include "fuse/ops.h"
#include "fuse/push.h"
#include "fuse/reply.h"
#include "fuse/seen.h"
#include "fuse/send.h"
#include "fuse/writer.h"

/* A request about name in parent, which must be a directory that we know. NULL: answered. */
static struct rsb_fop *
begin(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct rsb_inode *dir = rsb_fop_inode(req, parent);
	struct rsb_fop *fop;

	if (!dir)
		return NULL;
	if (strlen(name) > RSB_NAME_MAX) {
		rsb_reply_req_err(req, -ENAMETOOLONG);
		return NULL;
	}
	fop = rsb_fop_new(req);
	if (!fop)
		return NULL;
	rsb_hold_limit(fop);
	fop->inode = rsb_inode_ref(dir);
	(void)snprintf(fop->name, sizeof(fop->name), "%s", name);
	return fop;
}

static struct rsb_who
who(const struct rsb_fop *fop)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(fop->req);

	return rsb_idmap_who(&fop->fs->config.idmap, ctx->uid, ctx->gid);
}

/* ---- lookup ---- */

static void
on_lookup_ready(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_bytes name = rsb_bytes_str(fop->name);

	(void)rep;
	/* A hostile sidecar may have named one directory twice. */
	if (r >= 0 && rsb_seen_elsewhere(fop->other, fop->inode, name)) {
		r = rsb_seen_settle(&fop->other, fop->inode, name);
		if (r >= 0)
			rsb_seen_hint(fop->other, fop->inode, name);
	}
	if (r < 0)
		rsb_reply_err(fop, r);
	else
		rsb_reply_entry(fop, fop->inode, fop->name, fop->other);
}

static void
on_lookup_attr(struct rsb_fop *fop, int r, const void *rep)
{
	const struct rsb_attr_rep *got = rep;

	if (r < 0) {
		rsb_reply_err(fop, r);
		return;
	}
	rsb_fs_learn(fop->fs, fop->other, &got->attr, fop->since);
	rsb_guard_then(fop, fop->other, on_lookup_ready);
}

static void
on_lookup(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_fs *fs = fop->fs;
	const struct rsb_entry_rep *entry = rep;
	struct rsb_bytes name = rsb_bytes_str(fop->name);
	struct rsb_inode *inode = NULL;

	if (r == -ENOENT) {
		rsb_fs_name(fs, fop->inode, name, NULL, fop->since);
		rsb_reply_entry(fop, fop->inode, fop->name, NULL);
		return;
	}
	if (r >= 0)
		r = rsb_inode_given(fs->inodes, entry->id, &entry->attr, &inode);
	if (r >= 0)
		r = rsb_seen_settle(&inode, fop->inode, name);
	if (r < 0) {
		rsb_inode_unref(inode);
		rsb_reply_err(fop, r);
		return;
	}
	fop->other = inode;
	rsb_fs_name(fs, fop->inode, name, inode, fop->since);
	if (!inode->dirty && inode->changed <= fop->since) {
		rsb_fs_learn(fs, inode, &entry->attr, fop->since);
		rsb_guard_then(fop, inode, on_lookup_ready);
		return;
	}
	/* Something was written to it meanwhile: with the old size the kernel would cut it. */
	rsb_push_inode(fs, inode);
	rsb_fop_call(fop, RSB_OP_getattr, &(struct rsb_getattr_req){ .node = inode->wire },
		on_lookup_attr);
}

/* What our own tables know of name: true when the kernel was answered. */
static bool
lookup_known(fuse_req_t req, struct rsb_inode *dir, const char *name)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_inode *inode = NULL;
	int known = rsb_names_get(fs->names, dir, rsb_bytes_str(name), &inode);

	if (!rsb_cache_on(&fs->cache))
		return false;
	if (known < 0 && rsb_cache_valid(&fs->cache, dir->listed_gen)) {
		rsb_names_put(fs->names, dir, rsb_bytes_str(name), NULL);
		known = 0;
	}
	if (known < 0 || (known == 1 && !(rsb_fs_knows(fs, inode) && rsb_guard_ready(fs, inode))))
		return false;
	/* As in on_lookup_ready(). */
	if (known == 1 && rsb_seen_elsewhere(inode, dir, rsb_bytes_str(name)))
		return false;
	fs->stats.hits++;
	rsb_reply_req_entry(req, dir, name, inode);
	return true;
}

void
op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct rsb_inode *dir = rsb_inode_by_nodeid(fs->inodes, parent);
	struct rsb_lookup_req msg = { .name = rsb_bytes_str(name) };
	struct rsb_fop *fop;

	/* In a listed directory it would be taken for absent, which says less. */
	if (strlen(name) <= RSB_NAME_MAX && dir && rsb_inode_check(dir) == 0 &&
		lookup_known(req, dir, name))
		return;
	fop = begin(req, parent, name);
	if (!fop)
		return;
	msg.parent = fop->inode->wire;
	msg.id = rsb_fop_new_id(fs);
	rsb_fop_call(fop, RSB_OP_lookup, &msg, on_lookup);
}

void
op_forget(fuse_req_t req, fuse_ino_t nodeid, uint64_t n)
{
	struct rsb_inode *inode = rsb_inode_by_nodeid(rsb_fop_fs(req)->inodes, nodeid);

	if (inode)
		rsb_inode_forget(inode, n);
	fuse_reply_none(req);
}

void
op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct rsb_fs *fs = rsb_fop_fs(req);

	for (size_t i = 0; i < count; i++) {
		struct rsb_inode *inode = rsb_inode_by_nodeid(fs->inodes, forgets[i].ino);

		if (inode)
			rsb_inode_forget(inode, forgets[i].nlookup);
	}
	fuse_reply_none(req);
}

/* ---- new names ---- */

/* mknod, mkdir, symlink: fop->inode is the directory. */
static void
on_made(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_fs *fs = fop->fs;
	const struct rsb_entry_rep *entry = rep;
	struct rsb_inode *inode = NULL;

	if (r >= 0)
		r = rsb_inode_given(fs->inodes, entry->id, &entry->attr, &inode);
	/* A hostile sidecar may name a directory of the kernel's. */
	if (r >= 0)
		r = rsb_seen_settle(&inode, fop->inode, rsb_bytes_str(fop->name));
	if (r < 0) {
		rsb_inode_unref(inode);
		rsb_names_drop(fs->names, fop->inode, rsb_bytes_str(fop->name));
		rsb_reply_err(fop, r);
		return;
	}
	rsb_fop_changed(fop, &entry->dir, NULL);
	fop->other = inode;
	rsb_fs_name(fs, fop->inode, rsb_bytes_str(fop->name), inode, fop->since);
	rsb_fs_learn(fs, inode, &entry->attr, fop->since);
	/* Nobody else has put anything into a new directory; what we did is in the table. */
	if (S_ISDIR(inode->attr.mode) && rsb_fs_unchanged(fs, inode, fop->since))
		inode->listed_gen = fs->cache.generation;
	rsb_reply_entry(fop, fop->inode, fop->name, inode);
}

void
op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct rsb_fop *fop = begin(req, parent, name);
	struct rsb_mknod_req msg;

	if (!fop)
		return;
	msg = (struct rsb_mknod_req){
		.parent = fop->inode->wire,
		.name = rsb_bytes_str(name),
		.id = rsb_fop_new_id(fop->fs),
		.mode = mode,
		.rdev = rdev,
		.who = who(fop),
	};
	rsb_fop_mutate(fop, RSB_OP_mknod, &msg, on_made);
}

void
op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct rsb_fop *fop = begin(req, parent, name);
	struct rsb_mkdir_req msg;

	if (!fop)
		return;
	msg = (struct rsb_mkdir_req){
		.parent = fop->inode->wire,
		.name = rsb_bytes_str(name),
		.id = rsb_fop_new_id(fop->fs),
		.mode = mode & 07777,
		.who = who(fop),
	};
	rsb_fop_mutate(fop, RSB_OP_mkdir, &msg, on_made);
}

void
op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct rsb_fop *fop = begin(req, parent, name);
	struct rsb_symlink_req msg;

	if (!fop)
		return;
	msg = (struct rsb_symlink_req){
		.parent = fop->inode->wire,
		.name = rsb_bytes_str(name),
		.id = rsb_fop_new_id(fop->fs),
		.target = rsb_bytes_str(target),
		.who = who(fop),
	};
	rsb_fop_mutate(fop, RSB_OP_symlink, &msg, on_made);
}

/* fop->inode is the directory, fop->other the file. */
static void
on_link(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_fs *fs = fop->fs;
	const struct rsb_entry_rep *entry = rep;
	struct rsb_inode *inode = NULL;

	if (r >= 0)
		r = rsb_inode_given(fs->inodes, entry->id, &entry->attr, &inode);
	/* A hostile sidecar may name a directory of the kernel's. */
	if (r >= 0)
		r = rsb_seen_settle(&inode, fop->inode, rsb_bytes_str(fop->name));
	if (r < 0) {
		rsb_inode_unref(inode);
		rsb_names_drop(fs->names, fop->inode, rsb_bytes_str(fop->name));
		rsb_reply_err(fop, r);
		return;
	}
	rsb_fop_changed(fop, &entry->dir, inode == fop->other ? &entry->attr : NULL);
	if (inode == fop->other)
		rsb_seen_linked(inode, fop->inode, rsb_bytes_str(fop->name));
	rsb_fs_name(fs, fop->inode, rsb_bytes_str(fop->name), inode, fop->since);
	rsb_judge_linked(fs, inode, fop->inode, fop->name);
	if (fop->req)
		rsb_reply_req_entry(fop->req, fop->inode, fop->name, inode);
	rsb_fop_free(fop);
	rsb_inode_unref(inode);
}

void
op_link(fuse_req_t req, fuse_ino_t nodeid, fuse_ino_t newparent, const char *newname)
{
	struct rsb_inode *inode = rsb_fop_inode(req, nodeid);
	struct rsb_link_req msg;
	struct rsb_fop *fop;

	if (!inode)
		return;
	fop = begin(req, newparent, newname);
	if (!fop)
		return;
	fop->other = rsb_inode_ref(inode);
	rsb_push_inode(fop->fs, inode);
	msg = (struct rsb_link_req){
		.node = inode->wire,
		.newparent = fop->inode->wire,
		.newname = rsb_bytes_str(newname),
	};
	rsb_fop_mutate(fop, RSB_OP_link, &msg, on_link);
}

/* ---- names that go ---- */

/* Whoever is open and was seen there; who stays in its directory and is not needs no other hint. */
static void
move_open_files(struct rsb_fop *fop)
{
	struct rsb_handle *handle;
	size_t cursor = 0;

	while ((handle = rsb_handle_next(fop->fs->handles, &cursor)))
		rsb_seen_moved(handle->inode, fop->inode, rsb_bytes_str(fop->name), fop->other,
			rsb_bytes_str(fop->newname));
}

static void
on_unlink(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_fs *fs = fop->fs;
	const struct rsb_unlink_rep *gone = rep;
	struct rsb_inode *inode;

	if (r < 0) {
		rsb_names_drop(fs->names, fop->inode, rsb_bytes_str(fop->name));
		rsb_reply_err(fop, r);
		return;
	}
	rsb_fop_changed(fop, &gone->dir, NULL);
	rsb_fs_name(fs, fop->inode, rsb_bytes_str(fop->name), NULL, fop->since);
	inode = rsb_inode_by_id(fs->inodes, gone->id);
	if (inode) {
		rsb_fs_learn(fs, inode, &gone->attr, fop->since);
		rsb_alias_lose(inode, fop->inode, rsb_bytes_str(fop->name));
	}
	rsb_reply_err(fop, 0);
}

static void
unlink_by(fuse_req_t req, uint32_t op, fuse_ino_t parent, const char *name)
{
	struct rsb_fop *fop = begin(req, parent, name);
	struct rsb_unlink_req msg = { .name = rsb_bytes_str(name) };

	if (!fop)
		return;
	msg.parent = fop->inode->wire;
	rsb_fop_mutate(fop, op, &msg, on_unlink);
}

void
op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	unlink_by(req, RSB_OP_unlink, parent, name);
}

void
op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	unlink_by(req, RSB_OP_rmdir, parent, name);
}

/* fop->inode and fop->other are the directories; the flags are those of renameat2(2). */
static void
on_rename(struct rsb_fop *fop, int r, const void *rep)
{
	struct rsb_fs *fs = fop->fs;
	const struct rsb_rename_rep *got = rep;
	struct rsb_bytes name = rsb_bytes_str(fop->name);
	struct rsb_bytes newname = rsb_bytes_str(fop->newname);
	const bool is_dir = rsb_seen_has_dir(fop->inode, name);
	const bool over_dir = rsb_seen_has_dir(fop->other, newname);
	struct rsb_inode *moved = NULL;
	struct rsb_inode *over;

	(void)rsb_names_get(fs->names, fop->inode, name, &moved);
	if (r < 0) {
		rsb_names_drop(fs->names, fop->inode, name);
		rsb_names_drop(fs->names, fop->other, newname);
		rsb_reply_err(fop, r);
		return;
	}
	rsb_fop_changed(fop, &got->dir, &got->newdir);
	over = got->over_id ? rsb_inode_by_id(fs->inodes, got->over_id) : NULL;
	/* Said by a hostile sidecar, it would be given to the kernel at two places. */
	if (over && rsb_seen_elsewhere(over, fop->other, newname))
		over = NULL;
	if (over)
		rsb_fs_learn(fs, over, &got->over, fop->since);
	rsb_judge_moved(
		fs, fop->inode, fop->name, fop->other, fop->newname, fop->flags & RENAME_EXCHANGE);
	if (!rsb_list_empty(&fs->wrotes) && !rsb_writer_is_git(rsb_fop_pid(fop)))
		rsb_judge_meant(fs, fop->inode, fop->name, fop->other, fop->newname);
	/* The table may know another file under the name than the one that was there. */
	if (moved &&
		(moved->wire.ino != got->attr.ino || rsb_seen_elsewhere(moved, fop->inode, name)))
		moved = NULL;
	if (moved) {
		rsb_seen_moved(moved, fop->inode, name, fop->other, newname);
		rsb_fs_name(fs, fop->other, newname, rsb_inode_ref(moved), fop->since);
		rsb_alias_lose(moved, fop->inode, name);
		rsb_fs_learn(fs, moved, &got->attr, fop->since);
		rsb_judge_placed(fs, moved);
	} else {
		/* Its ctime has moved, and nobody can say whose that is. */
		rsb_fs_drop_locked(fs);
		rsb_seen_moved_all(fs->inodes, fop->inode, name, fop->other, newname, is_dir);
		move_open_files(fop);
		rsb_judge_placed_at(fs, fop->other, fop->newname);
	}
	if (!(fop->flags & RENAME_EXCHANGE)) {
		rsb_fs_name(fs, fop->inode, name, NULL, fop->since);
		if (over)
			rsb_alias_lose(over, fop->other, newname);
	} else if (over) {
		rsb_seen_moved(over, fop->other, newname, fop->inode, name);
		rsb_fs_name(fs, fop->inode, name, over, fop->since);
	} else {
		rsb_names_drop(fs->names, fop->inode, name);
		rsb_seen_moved_all(fs->inodes, fop->other, newname, fop->inode, name, over_dir);
	}
	/* Else the whole table would be gone through for each file that is saved. */
	if (is_dir || (over_dir && fop->flags & RENAME_EXCHANGE))
		rsb_guard_renamed(fs);
	rsb_inode_unref(moved);
	rsb_reply_err(fop, 0);
}

void
op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
	const char *newname, unsigned int flags)
{
	struct rsb_inode *newdir = rsb_fop_inode(req, newparent);
	const bool is_old = rsb_fop_is_old(rsb_fop_fs(req));
	struct rsb_rename_req msg;
	struct rsb_fop *fop;

	if (!newdir)
		return;
	if (strlen(newname) > RSB_NAME_MAX) {
		rsb_reply_req_err(req, -ENAMETOOLONG);
		return;
	}
	fop = begin(req, parent, name);
	if (!fop)
		return;
	fop->other = rsb_inode_ref(newdir);
	fop->flags = flags;
	(void)snprintf(fop->newname, sizeof(fop->newname), "%s", newname);
	if (!flags && !is_old)
		rsb_giveback(fop->fs, fop->inode, fop->name, newdir, fop->newname);
	msg = (struct rsb_rename_req){
		.parent = fop->inode->wire,
		.name = rsb_bytes_str(name),
		.newparent = newdir->wire,
		.newname = rsb_bytes_str(newname),
		.flags = flags,
	};
	rsb_fop_mutate(fop, RSB_OP_rename, &msg, on_rename);
}
