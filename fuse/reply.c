/* SPDX-License-Identifier: MIT */
#include "fuse/reply.h"

#include <errno.h>
#include <string.h>

#include "fuse/gitplace.h"
#include "fuse/guard.h"
#include "util/clock.h"

/*
 * libfuse and the kernel know errno values up to 511; a reply beyond is dropped before its
 * request is found, and the caller would wait for ever. ENOSYS means "never ask again".
 */
static int
to_kernel(int r)
{
	if (r == -ENOSYS)
		return EOPNOTSUPP;
	if (r == -ENOTCONN || r == -ETIMEDOUT || r == -ECANCELED || r == -EBADMSG)
		return EIO;
	return r < 0 && r > -512 ? -r : EIO;
}

void
rsb_reply_req_err(fuse_req_t req, int r)
{
	/* The one error of an answer: its caller is gone. Nothing hangs on this one. */
	(void)fuse_reply_err(req, r < 0 ? to_kernel(r) : 0);
}

void
rsb_reply_err(struct rsb_fop *fop, int r)
{
	if (fop->req)
		rsb_reply_req_err(fop->req, r);
	rsb_fop_free(fop);
}

/* How long the kernel may keep the attributes. */
static double
attr_ttl(struct rsb_fs *fs, struct rsb_inode *inode)
{
	bool known =
		rsb_fs_knows(fs, inode) && rsb_guard_ready(fs, inode) && !rsb_guard_lags(fs, inode);
	double ttl = known ? rsb_cache_ttl(&fs->cache) : 0;

	if (ttl > 0)
		inode->kernel_gen = fs->cache.generation;
	return ttl;
}

/* How long the kernel may keep the name. */
static double
name_ttl(struct rsb_fs *fs, const struct rsb_inode *parent, struct rsb_bytes name,
	const struct rsb_inode *inode)
{
	struct rsb_inode *known;
	double ttl = rsb_cache_ttl(&fs->cache);

	/* What is or may become a directory is never taken away from under who is in it. */
	if (!fs->kernel_expires && (!inode || S_ISDIR(inode->attr.mode))) {
		rsb_names_take_back(fs->names, parent, name);
		return 0;
	}
	/* Only what our table says too: a reply that was overtaken is not in it. */
	if (ttl > 0 && rsb_names_get(fs->names, parent, name, &known) < 0 &&
		!rsb_cache_valid(&fs->cache, parent->listed_gen))
		return 0;
	if (ttl > 0 && rsb_names_lend(fs->names, parent, name, rsb_now_ns()) < 0)
		return 0;
	return ttl;
}

struct fuse_entry_param
rsb_reply_param(struct rsb_fs *fs, const struct rsb_inode *parent, struct rsb_bytes name,
	struct rsb_inode *inode)
{
	struct fuse_entry_param e = { .ino = 0 };

	e.entry_timeout = name_ttl(fs, parent, name, inode);
	if (!inode)
		return e;
	rsb_gitplace_given(inode, parent, name);
	e.ino = inode->nodeid;
	e.generation = inode->nodeid >> 32;
	e.attr_timeout = attr_ttl(fs, inode);
	rsb_attr_to_stat(&inode->attr, &fs->config.idmap, &e.attr);
	rsb_guard_stat(fs, inode, &e.attr);
	return e;
}

void
rsb_reply_req_attr(fuse_req_t req, struct rsb_inode *inode)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	double ttl = attr_ttl(fs, inode);
	struct stat st;

	rsb_attr_to_stat(&inode->attr, &fs->config.idmap, &st);
	rsb_guard_stat(fs, inode, &st);
	(void)fuse_reply_attr(req, &st, ttl);
}

void
rsb_reply_req_entry(
	fuse_req_t req, const struct rsb_inode *parent, const char *name, struct rsb_inode *inode)
{
	struct rsb_fs *fs = rsb_fop_fs(req);
	struct fuse_entry_param e = rsb_reply_param(fs, parent, rsb_bytes_str(name), inode);

	if (!inode && e.entry_timeout <= 0) {
		rsb_reply_req_err(req, -ENOENT);
		return;
	}
	if (inode)
		rsb_inode_looked_up(inode);
	/* What the kernel did not take it does not count either. */
	if (fuse_reply_entry(req, &e) < 0 && inode)
		rsb_inode_forget(inode, 1);
}

void
rsb_reply_entry(struct rsb_fop *fop, const struct rsb_inode *parent, const char *name,
	struct rsb_inode *inode)
{
	if (fop->req)
		rsb_reply_req_entry(fop->req, parent, name, inode);
	rsb_fop_free(fop);
}

void
rsb_reply_attr(struct rsb_fop *fop, struct rsb_inode *inode)
{
	if (fop->req)
		rsb_reply_req_attr(fop->req, inode);
	rsb_fop_free(fop);
}

/*
 * The kernel's pages of the node agree with it from now on, if they are dropped at this open or
 * agreed before: nobody but this kernel writes while the generation lasts.
 */
static struct fuse_file_info
open_info(struct rsb_fs *fs, struct rsb_handle *handle, const struct fuse_file_info *fi)
{
	struct rsb_inode *inode = handle->inode;
	struct fuse_file_info out = *fi;
	/* Also while the link is not live, when no other pages can be had: nobody else writes. */
	bool on = rsb_cache_on(&fs->cache);

	out.fh = handle->fh;
	/*
	 * Past the page cache, where a mapping finds no page but those of what it is shown: who
	 * writes leaves none there either. Pages from before go with this open and each mmap(2).
	 */
	out.direct_io = handle->view || rsb_guard_watches(fs, inode);
	out.keep_cache = on && !out.direct_io && rsb_cache_valid(&fs->cache, inode->pages_gen);
	if (S_ISDIR(inode->attr.mode))
		out.cache_readdir = on;
	inode->pages_gen = on && !out.direct_io ? fs->cache.generation : 0;
	if (on)
		inode->kernel_gen = fs->cache.generation;
	return out;
}

void
rsb_reply_req_open(fuse_req_t req, struct rsb_handle *handle, const struct fuse_file_info *fi)
{
	struct fuse_file_info out = open_info(rsb_fop_fs(req), handle, fi);

	rsb_handle_set_told(handle);
	(void)fuse_reply_open(req, &out);
}

int
rsb_reply_open(struct rsb_fop *fop, struct rsb_handle *handle)
{
	int r = -ENOENT;

	if (fop->req) {
		struct fuse_file_info out = open_info(fop->fs, handle, &fop->fi);

		rsb_handle_set_told(handle);
		r = fuse_reply_open(fop->req, &out);
	}
	rsb_fop_free(fop);
	return r < 0 ? -ENOENT : 0;
}

int
rsb_reply_create(struct rsb_fop *fop, const struct rsb_inode *parent, struct rsb_inode *inode,
	struct rsb_handle *handle)
{
	int r = -ENOENT;

	if (fop->req) {
		struct fuse_entry_param e =
			rsb_reply_param(fop->fs, parent, rsb_bytes_str(fop->name), inode);
		struct fuse_file_info out = open_info(fop->fs, handle, &fop->fi);

		rsb_inode_looked_up(inode);
		rsb_handle_set_told(handle);
		r = fuse_reply_create(fop->req, &e, &out);
		if (r < 0)
			rsb_inode_forget(inode, 1);
	}
	rsb_fop_free(fop);
	return r < 0 ? -ENOENT : 0;
}

void
rsb_reply_data(struct rsb_fop *fop, struct rsb_bytes data)
{
	if (fop->req)
		(void)fuse_reply_buf(fop->req, (const char *)data.data, data.size);
	rsb_fop_free(fop);
}

void
rsb_reply_written(struct rsb_fop *fop, size_t size)
{
	if (fop->req)
		(void)fuse_reply_write(fop->req, size);
	rsb_fop_free(fop);
}
