/* SPDX-License-Identifier: MIT */
/* Open files: open, create, read, write, release. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sidecar/fh.h"
#include "sidecar/lock.h"
#include "sidecar/opening.h"
#include "sidecar/own.h"
#include "sidecar/perm.h"
#include "sidecar/place.h"
#include "sidecar/resolve.h"
#include "sidecar/revival.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"

/* A name that comes and goes under us is tried so often. */
#define CREATE_TRIES 8

void
rsb_serve_open(struct rsb_request *rq, const struct rsb_open_req *req)
{
	struct rsb_attr_rep rep;
	int r = rsb_opening_node(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

void
rsb_serve_reopen(struct rsb_request *rq, const struct rsb_open_req *req)
{
	struct rsb_attr_rep rep;
	int r = -EBADF;

	if (!rsb_revival_released(rq->sess->revival, req->fh))
		r = rsb_opening_again(rq->sess, req, &rep);
	rsb_request_reply(rq, r, &rep);
}

static int
create_new(const struct rsb_place *place, const struct rsb_own *own, int flags, mode_t mode)
{
	int r = rsb_own_begin(own);

	if (r < 0)
		return r;
	int fd = openat(place->dir_fd, place->name,
		flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
	rsb_own_end(own);
	return fd < 0 ? -errno : fd;
}

static int
open_existing(const struct rsb_root *root, const struct rsb_place *place, int flags, uint64_t wire,
	int *ret_path_fd)
{
	rsb_autoclose int path_fd = rsb_place_child(place);

	if (path_fd < 0)
		return path_fd;
	int fd = rsb_opening_path(root, path_fd, flags, wire);
	if (fd >= 0)
		*ret_path_fd = rsb_steal_fd(&path_fd);
	return fd;
}

/* As O_CREAT without O_EXCL, but never through a link. */
static int
create_or_open(const struct rsb_root *root, const struct rsb_place *place,
	const struct rsb_own *own, const struct rsb_create_req *req, int *ret_path_fd)
{
	rsb_autoclose int spare = -1;
	int flags;
	int fd = rsb_opening_flags(req->flags, &flags);

	if (fd < 0)
		return fd;
	/* For path_fd: a file that was made and then cannot be served would stay. */
	spare = fcntl(place->dir_fd, F_DUPFD_CLOEXEC, 0);
	if (spare < 0)
		return -errno;
	for (int i = 0; i < CREATE_TRIES; i++) {
		fd = create_new(place, own, flags & ~O_TRUNC, (mode_t)(req->mode & 07777));
		if (fd >= 0) {
			int path_fd;

			(void)close(rsb_steal_fd(&spare));
			path_fd = rsb_root_path_fd(root, fd);
			if (path_fd < 0) {
				(void)close(fd);
				return path_fd;
			}
			*ret_path_fd = path_fd;
			return fd;
		}
		if (fd != -EEXIST || req->flags & RSB_OPENING_EXCL)
			return fd;
		fd = open_existing(root, place, flags, req->flags, ret_path_fd);
		if (fd != -ENOENT)
			return fd;
	}
	return fd;
}

static int
create(struct rsb_sess *sess, const struct rsb_create_req *req, struct rsb_entry_rep *rep)
{
	RSB_CLEANUP(rsb_place_done) struct rsb_place place = RSB_PLACE_EMPTY;
	rsb_autoclose int path_fd = -1;
	struct rsb_own own;
	int r;

	r = rsb_fhs_offer(sess->fhs, req->fh);
	if (r < 0)
		return r;
	r = rsb_nodes_offer(sess->nodes, req->id);
	if (r < 0)
		return r;
	r = rsb_own_init(&own, sess->config, &req->who);
	if (r < 0)
		return r;
	r = rsb_place_init(&place, sess->nodes, &req->parent, req->name);
	if (r < 0)
		return r;
	rsb_autoclose int fd =
		create_or_open(rsb_nodes_root(sess->nodes), &place, &own, req, &path_fd);
	if (fd < 0)
		return fd;
	r = rsb_place_enter(&place, sess->nodes, req->id, &path_fd, rep);
	if (r < 0)
		return r;
	r = rsb_place_attr(&place, sess->nodes, &rep->dir);
	if (r < 0)
		return r;
	return rsb_opening_enter(sess, req->fh, rep->id, rsb_steal_fd(&fd), rsb_steal_fd(&path_fd));
}

void
rsb_serve_create(struct rsb_request *rq, const struct rsb_create_req *req)
{
	struct rsb_entry_rep rep = { .id = 0 };
	int r = create(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

static int
read_fh(struct rsb_sess *sess, const struct rsb_read_req *req, uint8_t *data, size_t *ret_size)
{
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use use = { .fhs = sess->fhs };
	size_t size = 0;
	int r = rsb_fhs_get(sess->fhs, req->fh, RSB_FH_FILE, &use.file);

	if (r < 0)
		return r;
	if (req->offset > (uint64_t)INT64_MAX - req->size)
		return -EINVAL;
	while (size < req->size) {
		ssize_t n = pread(
			use.file->fd, data + size, req->size - size, (off_t)(req->offset + size));

		if (n < 0 && errno == EINTR)
			continue;
		/* What was read before an error is no end of the file: the error is the answer. */
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
	}
	*ret_size = size;
	return 0;
}

void
rsb_serve_read(struct rsb_request *rq, const struct rsb_read_req *req)
{
	rsb_autofree uint8_t *data = NULL;
	struct rsb_read_rep rep = { .data = { .size = 0 } };
	int r = -EINVAL;

	if (req->size <= RSB_IO_MAX) {
		data = malloc(req->size + 1);
		r = data ? read_fh(rq->sess, req, data, &rep.data.size) : -ENOMEM;
		rep.data.data = data;
	}
	rsb_request_reply(rq, r, &rep);
}

static int
write_at(int fd, struct rsb_bytes data, uint64_t offset)
{
	while (data.size) {
		ssize_t n = pwrite(fd, data.data, data.size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		data.data += n;
		data.size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

/*
 * The kernel finds the end under the inode's lock, so processes of the sandbox may append too. With
 * offset -1 it moves the file position, which nothing else uses, to where the write ended.
 */
static int
append(int fd, struct rsb_bytes data, uint64_t *ret_offset)
{
	bool first = true;

	while (data.size) {
		struct iovec iov = { .iov_base = (void *)(uintptr_t)data.data,
			.iov_len = data.size };
		ssize_t n = pwritev2(fd, &iov, 1, -1, RWF_APPEND);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		off_t end = lseek(fd, 0, SEEK_CUR);
		if (end < n)
			return end < 0 ? -errno : -EIO;
		if (first)
			*ret_offset = (uint64_t)(end - n);
		first = false;
		data.data += n;
		data.size -= (size_t)n;
	}
	return 0;
}

static int
write_fh(struct rsb_sess *sess, const struct rsb_write_req *req, struct rsb_write_rep *rep)
{
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use use = { .fhs = sess->fhs };
	const struct rsb_root *root = rsb_nodes_root(sess->nodes);
	int r = rsb_fhs_get(sess->fhs, req->fh, RSB_FH_FILE, &use.file);

	if (r < 0)
		return r;
	if (req->flags & ~(uint64_t)(RSB_WRITE_APPEND | RSB_WRITE_KILL_SUIDGID))
		return -EINVAL;
	if (req->offset > (uint64_t)INT64_MAX - req->data.size)
		return -EFBIG;
	if (use.file->access == O_RDONLY)
		return -EBADF;
	if (req->flags & RSB_WRITE_KILL_SUIDGID) {
		r = rsb_perm_kill_suidgid(root, use.file->fd);
		if (r < 0)
			return r;
	}
	rep->offset = req->offset;
	if (req->flags & RSB_WRITE_APPEND)
		r = append(use.file->fd, req->data, &rep->offset);
	else
		r = write_at(use.file->fd, req->data, req->offset);
	if (r < 0)
		return r;
	return rsb_nodes_attr(sess->nodes, use.file->node, use.file->fd, &rep->attr);
}

void
rsb_serve_write(struct rsb_request *rq, const struct rsb_write_req *req)
{
	struct rsb_write_rep rep;
	int r = write_fh(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

void
rsb_serve_release(struct rsb_request *rq, const struct rsb_fh_req *req)
{
	struct rsb_sess *sess = rq->sess;
	struct rsb_fh *file;
	int r = rsb_fhs_remove(sess->fhs, req->fh, RSB_FH_FILE, &file);

	if (r == 0) {
		rsb_locks_release(sess->locks, file);
		rsb_nodes_unpin(sess->nodes, file->node);
		rsb_fhs_put(sess->fhs, file);
	}
	rsb_request_reply(rq, r, NULL);
}
