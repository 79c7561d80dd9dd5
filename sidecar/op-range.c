/* SPDX-License-Identifier: MIT */
/* Whole ranges of open files: fsync, fallocate, lseek, copy. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sidecar/fh.h"
#include "sidecar/node.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"

/* The mutator is busy with one copy no longer than this takes; the host asks for the rest. */
#define COPY_MAX (UINT64_C(64) << 20)
#define COPY_BLOCK ((size_t)128 << 10)

static int
sync_fh(struct rsb_sess *sess, const struct rsb_fsync_req *req, struct rsb_attr_rep *rep)
{
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use use = { .fhs = sess->fhs };
	int r = rsb_fhs_get(sess->fhs, req->fh, RSB_FH_FILE, &use.file);

	if (r < 0)
		return r;
	r = req->data_only ? fdatasync(use.file->fd) : fsync(use.file->fd);
	if (r < 0)
		return -errno;
	return rsb_nodes_attr(sess->nodes, use.file->node, use.file->fd, &rep->attr);
}

void
rsb_serve_fsync(struct rsb_request *rq, const struct rsb_fsync_req *req)
{
	struct rsb_attr_rep rep;
	int r = sync_fh(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

static int
fallocate_fh(struct rsb_sess *sess, const struct rsb_fallocate_req *req, struct rsb_attr_rep *rep)
{
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use use = { .fhs = sess->fhs };
	int r = rsb_fhs_get(sess->fhs, req->fh, RSB_FH_FILE, &use.file);

	if (r < 0)
		return r;
	if (req->mode > INT32_MAX)
		return -EOPNOTSUPP;
	if (req->offset > INT64_MAX || req->length > INT64_MAX)
		return -EINVAL;
	do {
		r = fallocate(use.file->fd, (int)req->mode, (off_t)req->offset, (off_t)req->length);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return rsb_nodes_attr(sess->nodes, use.file->node, use.file->fd, &rep->attr);
}

void
rsb_serve_fallocate(struct rsb_request *rq, const struct rsb_fallocate_req *req)
{
	struct rsb_attr_rep rep;
	int r = fallocate_fh(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

static int
seek_fh(struct rsb_sess *sess, const struct rsb_lseek_req *req, struct rsb_lseek_rep *rep)
{
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use use = { .fhs = sess->fhs };
	int r = rsb_fhs_get(sess->fhs, req->fh, RSB_FH_FILE, &use.file);

	if (r < 0)
		return r;
	if ((req->whence != SEEK_DATA && req->whence != SEEK_HOLE) || req->offset > INT64_MAX)
		return -EINVAL;
	/* The position of the file itself belongs to appending writes, which run meanwhile. */
	rsb_autoclose int fd = rsb_root_reopen(rsb_nodes_root(sess->nodes), use.file->fd, O_RDONLY);
	if (fd < 0)
		return fd;
	off_t offset = lseek(fd, (off_t)req->offset, (int)req->whence);
	if (offset < 0)
		return -errno;
	rep->offset = (uint64_t)offset;
	return 0;
}

void
rsb_serve_lseek(struct rsb_request *rq, const struct rsb_lseek_req *req)
{
	struct rsb_lseek_rep rep;
	int r = seek_fh(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

struct copy {
	int in;
	int out;
	uint64_t off_in;
	uint64_t off_out;
	uint64_t left;
};

/* One round of the kernel's own copy. Bytes copied, 0 at the end of the file. */
static ssize_t
copy_in_kernel(struct copy *c)
{
	off64_t off_in = (off64_t)c->off_in;
	off64_t off_out = (off64_t)c->off_out;
	ssize_t n;

	do {
		n = copy_file_range(c->in, &off_in, c->out, &off_out, (size_t)c->left, 0);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t
copy_block(struct copy *c, uint8_t *block)
{
	ssize_t n = pread(c->in, block, (size_t)rsb_min(c->left, COPY_BLOCK), (off_t)c->off_in);

	if (n <= 0)
		return n < 0 ? -errno : 0;
	n = pwrite(c->out, block, (size_t)n, (off_t)c->off_out);
	return n < 0 ? -errno : n;
}

static bool
is_unfit(ssize_t r)
{
	return r == -EXDEV || r == -EINVAL || r == -EOPNOTSUPP || r == -ENOSYS;
}

/* Bytes copied; an error only if there are none. */
static ssize_t
copy_range(struct copy *c)
{
	rsb_autofree uint8_t *block = NULL;
	uint64_t done = 0;
	ssize_t n = 1;

	while (c->left && n > 0) {
		n = block ? copy_block(c, block) : copy_in_kernel(c);
		if (!block && is_unfit(n)) {
			block = malloc(COPY_BLOCK);
			n = block ? copy_block(c, block) : -ENOMEM;
		}
		if (n < 0)
			return done ? (ssize_t)done : n;
		c->off_in += (uint64_t)n;
		c->off_out += (uint64_t)n;
		c->left -= (uint64_t)n;
		done += (uint64_t)n;
	}
	return (ssize_t)done;
}

/*
 * What copy_file_range(2) refuses, also where we copy by hand; cuts the length at the file's end.
 */
static int
check_copy(struct copy *c, const struct rsb_fh *in, const struct rsb_fh *out)
{
	struct stat st;

	if (in->access == O_WRONLY || out->access == O_RDONLY)
		return -EBADF;
	if (c->off_in > INT64_MAX || c->off_out > INT64_MAX || c->left > INT64_MAX)
		return -EINVAL;
	if (fstat(in->fd, &st) < 0)
		return -errno;
	c->left = c->off_in < (uint64_t)st.st_size
			  ? rsb_min(c->left, (uint64_t)st.st_size - c->off_in)
			  : 0;
	if (in->dev == out->dev && in->ino == out->ino && c->off_out < c->off_in + c->left &&
		c->off_in < c->off_out + c->left)
		return -EINVAL;
	c->left = rsb_min(c->left, COPY_MAX);
	return 0;
}

static int
copy_fh(struct rsb_sess *sess, const struct rsb_copy_req *req, struct rsb_copy_rep *rep)
{
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use in = { .fhs = sess->fhs };
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use out = { .fhs = sess->fhs };
	int r = rsb_fhs_get(sess->fhs, req->fh_in, RSB_FH_FILE, &in.file);

	if (r < 0)
		return r;
	r = rsb_fhs_get(sess->fhs, req->fh_out, RSB_FH_FILE, &out.file);
	if (r < 0)
		return r;
	struct copy c = {
		.in = in.file->fd,
		.out = out.file->fd,
		.off_in = req->off_in,
		.off_out = req->off_out,
		.left = req->length,
	};
	r = check_copy(&c, in.file, out.file);
	if (r < 0)
		return r;
	ssize_t n = copy_range(&c);
	if (n < 0)
		return (int)n;
	rep->length = (uint64_t)n;
	return rsb_nodes_attr(sess->nodes, out.file->node, out.file->fd, &rep->attr);
}

void
rsb_serve_copy(struct rsb_request *rq, const struct rsb_copy_req *req)
{
	struct rsb_copy_rep rep;
	int r = copy_fh(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}
