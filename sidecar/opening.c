/* SPDX-License-Identifier: MIT */
#include "sidecar/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sidecar/fh.h"
#include "sidecar/node.h"
#include "sidecar/perm.h"
#include "sidecar/resolve.h"
#include "util/cleanup.h"

/* open(2) flags on the wire, those of x86-64; other machines number some of them differently. */
#define WIRE_ACCMODE UINT64_C(03)
#define WIRE_TRUNC UINT64_C(01000)
#define WIRE_DSYNC UINT64_C(010000)
#define WIRE_DIRECT UINT64_C(040000)
#define WIRE_SYNC UINT64_C(04010000)

int
rsb_opening_flags(uint64_t wire, int *ret_flags)
{
	static const int access[] = { O_RDONLY, O_WRONLY, O_RDWR };
	int flags;

	if ((wire & WIRE_ACCMODE) == WIRE_ACCMODE)
		return -EINVAL;
	flags = access[wire & WIRE_ACCMODE];
	if (wire & WIRE_TRUNC)
		flags |= O_TRUNC;
	if (wire & WIRE_DIRECT)
		flags |= O_DIRECT;
	if ((wire & WIRE_SYNC) == WIRE_SYNC)
		flags |= O_SYNC;
	else if (wire & WIRE_DSYNC)
		flags |= O_DSYNC;
	*ret_flags = flags;
	return 0;
}

int
rsb_opening_enter(struct rsb_sess *sess, uint64_t fh, uint64_t id, int fd, int path_fd)
{
	rsb_autoclose int file_fd = fd;
	int flags = fcntl(fd, F_GETFL);
	int r = rsb_nodes_pin(sess->nodes, id, path_fd);

	if (r < 0)
		return r;
	if (flags & O_DIRECT && fcntl(fd, F_SETFL, flags & ~O_DIRECT) < 0)
		r = -errno;
	if (r == 0)
		r = rsb_fhs_add_file(sess->fhs, fh, id, fd, flags & O_ACCMODE);
	if (r < 0)
		rsb_nodes_unpin(sess->nodes, id);
	else
		(void)rsb_steal_fd(&file_fd);
	return r;
}

int
rsb_opening_path(const struct rsb_root *root, int path_fd, int flags, uint64_t wire)
{
	if (flags & O_TRUNC && !(wire & RSB_OPEN_KEEP_SUIDGID)) {
		int r = rsb_perm_kill_suidgid(root, path_fd);
		if (r < 0)
			return r;
	}
	int fd = rsb_root_reopen(root, path_fd, flags);
	if (fd < 0)
		return fd;
	/* A directory may be opened for reading, but only to be listed. */
	struct stat st;
	if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode)) {
		(void)close(fd);
		return -EISDIR;
	}
	return fd;
}

int
rsb_opening_node(struct rsb_sess *sess, const struct rsb_open_req *req, struct rsb_attr_rep *rep)
{
	int flags;
	int r = rsb_opening_flags(req->flags, &flags);

	if (r < 0)
		return r;
	r = rsb_fhs_offer(sess->fhs, req->fh);
	if (r < 0)
		return r;
	rsb_autoclose int path_fd = rsb_resolve(sess->nodes, &req->node);
	if (path_fd < 0)
		return path_fd;
	rsb_autoclose int fd =
		rsb_opening_path(rsb_nodes_root(sess->nodes), path_fd, flags, req->flags);
	if (fd < 0)
		return fd;
	r = rsb_nodes_attr(sess->nodes, req->node.id, fd, &rep->attr);
	if (r < 0)
		return r;
	return rsb_opening_enter(
		sess, req->fh, req->node.id, rsb_steal_fd(&fd), rsb_steal_fd(&path_fd));
}

int
rsb_opening_again(
	struct rsb_sess *sess, const struct rsb_open_req *req, struct rsb_attr_rep *ret_rep)
{
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use use = { .fhs = sess->fhs };
	struct rsb_open_req again = *req;

	if (rsb_fhs_get(sess->fhs, req->fh, RSB_FH_FILE, &use.file) == 0)
		return rsb_nodes_attr(sess->nodes, use.file->node, use.file->fd, &ret_rep->attr);
	again.flags &= ~WIRE_TRUNC;
	return rsb_opening_node(sess, &again, ret_rep);
}
