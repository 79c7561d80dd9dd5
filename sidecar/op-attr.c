/* SPDX-License-Identifier: MIT */
/* Attributes: getattr, setattr, statfs. */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sidecar/attr.h"
#include "sidecar/fh.h"
#include "sidecar/perm.h"
#include "sidecar/resolve.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"

#define SET_ALL                                                                                    \
	(RSB_SET_MODE | RSB_SET_UID | RSB_SET_GID | RSB_SET_SIZE | RSB_SET_ATIME | RSB_SET_MTIME | \
		RSB_SET_ATIME_NOW | RSB_SET_MTIME_NOW | RSB_SET_KILL_SUIDGID)
#define SET_TIMES (RSB_SET_ATIME | RSB_SET_MTIME | RSB_SET_ATIME_NOW | RSB_SET_MTIME_NOW)

/*
 * A descriptor of what a request means: of an open file, or an O_PATH one of the node where fh is
 * not open: the host may name one that is about to be opened, or was closed since. The caller's.
 */
static int
subject(struct rsb_sess *sess, const struct rsb_node *node, uint64_t fh, uint64_t *ret_id)
{
	struct rsb_fh_use use = { .fhs = sess->fhs };
	int r;

	if (fh == 0 || rsb_fhs_get(sess->fhs, fh, RSB_FH_FILE, &use.file) < 0) {
		*ret_id = node->id;
		return rsb_resolve(sess->nodes, node);
	}
	*ret_id = use.file->node;
	r = fcntl(use.file->fd, F_DUPFD_CLOEXEC, 0);
	if (r < 0)
		r = -errno;
	rsb_fh_use_done(&use);
	return r;
}

static int
getattr(struct rsb_sess *sess, const struct rsb_getattr_req *req, struct rsb_attr_rep *rep)
{
	uint64_t id;
	rsb_autoclose int fd = subject(sess, &req->node, req->fh, &id);

	return fd < 0 ? fd : rsb_nodes_attr(sess->nodes, id, fd, &rep->attr);
}

void
rsb_serve_getattr(struct rsb_request *rq, const struct rsb_getattr_req *req)
{
	struct rsb_attr_rep rep;
	int r = getattr(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

static int
check_time(uint64_t valid, uint64_t set, const struct rsb_time *t)
{
	return valid & set && t->nsec >= RSB_NSEC_PER_SEC ? -EINVAL : 0;
}

/* Before anything is changed. */
static int
check(const struct rsb_setattr_req *req)
{
	if (req->valid & ~(uint64_t)SET_ALL)
		return -EINVAL;
	if (req->valid & RSB_SET_MODE && req->mode & ~(uint64_t)(S_IFMT | 07777))
		return -EINVAL;
	/* The highest value means "no change" to the kernel. */
	if ((req->valid & RSB_SET_UID && req->uid >= UINT32_MAX) ||
		(req->valid & RSB_SET_GID && req->gid >= UINT32_MAX))
		return -EINVAL;
	if (req->valid & RSB_SET_SIZE && req->size > INT64_MAX)
		return -EFBIG;
	if (check_time(req->valid, RSB_SET_ATIME, &req->atime) < 0)
		return -EINVAL;
	return check_time(req->valid, RSB_SET_MTIME, &req->mtime);
}

static int
set_owner(int fd, const struct rsb_setattr_req *req)
{
	uid_t uid = req->valid & RSB_SET_UID ? (uid_t)req->uid : (uid_t)-1;
	gid_t gid = req->valid & RSB_SET_GID ? (gid_t)req->gid : (gid_t)-1;

	/* To nobody new: the kernel drops set-user-ID by its own rules, and the ctime moves. */
	if (!(req->valid & (RSB_SET_UID | RSB_SET_GID)) && req->valid != RSB_SET_KILL_SUIDGID)
		return 0;
	return fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int
set_size(const struct rsb_root *root, int fd, uint64_t size)
{
	struct stat st;

	/* The host's descriptor may do; one for reading or of O_PATH says EINVAL or EBADF. */
	if (ftruncate(fd, (off_t)size) == 0)
		return 0;
	if (errno != EINVAL && errno != EBADF)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	rsb_autoclose int new_fd = rsb_root_reopen(root, fd, O_WRONLY);
	if (new_fd < 0)
		return new_fd;
	return ftruncate(new_fd, (off_t)size) < 0 ? -errno : 0;
}

static struct timespec
time_to_set(uint64_t valid, uint64_t set, uint64_t set_now, const struct rsb_time *t)
{
	struct timespec ts = { .tv_nsec = UTIME_OMIT };

	if (valid & set_now)
		ts.tv_nsec = UTIME_NOW;
	else if (valid & set)
		ts = (struct timespec){ .tv_sec = t->sec, .tv_nsec = (long)t->nsec };
	return ts;
}

static int
set_times(const struct rsb_root *root, int fd, const struct rsb_setattr_req *req)
{
	char name[RSB_PROC_NAME_SIZE];
	const struct timespec ts[2] = {
		time_to_set(req->valid, RSB_SET_ATIME, RSB_SET_ATIME_NOW, &req->atime),
		time_to_set(req->valid, RSB_SET_MTIME, RSB_SET_MTIME_NOW, &req->mtime),
	};

	if (!(req->valid & SET_TIMES))
		return 0;
	if (utimensat(fd, "", ts, AT_EMPTY_PATH) == 0)
		return 0;
	/* Kernels before 5.8 do not know the flag. */
	if (errno != EINVAL)
		return -errno;
	int proc_fd = rsb_root_proc_link(root, fd, name);
	if (proc_fd < 0)
		return proc_fd;
	return utimensat(proc_fd, name, ts, 0) < 0 ? -errno : 0;
}

static int
setattr(struct rsb_sess *sess, const struct rsb_setattr_req *req, struct rsb_attr_rep *rep)
{
	const struct rsb_root *root = rsb_nodes_root(sess->nodes);
	uint64_t id;
	int r = check(req);

	if (r < 0)
		return r;
	rsb_autoclose int fd = subject(sess, &req->node, req->fh, &id);
	if (fd < 0)
		return fd;
	/*
	 * Changing the owner clears set-user-ID, so the mode comes after it; changing the size sets
	 * times.
	 */
	r = set_owner(fd, req);
	if (r == 0 && req->valid & RSB_SET_KILL_SUIDGID)
		r = rsb_perm_kill_suidgid(root, fd);
	if (r == 0 && req->valid & RSB_SET_MODE)
		r = rsb_perm_set(root, fd, (mode_t)(req->mode & 07777));
	if (r == 0 && req->valid & RSB_SET_SIZE)
		r = set_size(root, fd, req->size);
	if (r == 0)
		r = set_times(root, fd, req);
	return r < 0 ? r : rsb_nodes_attr(sess->nodes, id, fd, &rep->attr);
}

void
rsb_serve_setattr(struct rsb_request *rq, const struct rsb_setattr_req *req)
{
	struct rsb_attr_rep rep;
	int r = setattr(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

/* Keeps the count of mutations where the host took one back that it had not sent. */
void
rsb_serve_skip(struct rsb_request *rq, const struct rsb_empty *req rsb_unused)
{
	rsb_request_reply(rq, 0, NULL);
}

void
rsb_serve_statfs(struct rsb_request *rq, const struct rsb_empty *req rsb_unused)
{
	struct rsb_statfs_rep rep;
	struct statvfs fs;

	if (fstatvfs(rq->sess->config->root_fd, &fs) < 0) {
		rsb_request_reply(rq, -errno, NULL);
		return;
	}
	rep = (struct rsb_statfs_rep){
		.bsize = fs.f_bsize,
		.frsize = fs.f_frsize,
		.blocks = fs.f_blocks,
		.bfree = fs.f_bfree,
		.bavail = fs.f_bavail,
		.files = fs.f_files,
		.ffree = fs.f_ffree,
		.namemax = fs.f_namemax,
	};
	rsb_request_reply(rq, 0, &rep);
}
