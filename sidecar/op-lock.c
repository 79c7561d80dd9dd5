/* SPDX-License-Identifier: MIT */
/* Locks: lock, getlk, unlock_all. */

#include <errno.h>
#include <fcntl.h>

#include "sidecar/fh.h"
#include "sidecar/lock.h"
#include "sidecar/node.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"

/* -EINVAL: no lock at all. */
static int
lock_of(const struct rsb_lock_req *req, struct rsb_lock *ret_lock)
{
	if (req->kind != RSB_LOCK_POSIX && req->kind != RSB_LOCK_FLOCK)
		return -EINVAL;
	if (req->type != F_RDLCK && req->type != F_WRLCK && req->type != F_UNLCK)
		return -EINVAL;
	if (req->start > INT64_MAX ||
		(req->length && req->length - 1 > (uint64_t)INT64_MAX - req->start))
		return -EINVAL;
	/* The whole range has a length that off_t has not; to the end is the same. */
	*ret_lock = (struct rsb_lock){
		.owner = req->owner,
		.kind = (enum rsb_lock_kind)req->kind,
		.type = (short)req->type,
		.pid = req->pid,
		.start = (int64_t)req->start,
		.length = req->length > INT64_MAX ? 0 : (int64_t)req->length,
	};
	return 0;
}

/* 0: the answer comes later. 1: done. */
static int
take_lock(struct rsb_request *rq, const struct rsb_lock_req *req)
{
	struct rsb_sess *sess = rq->sess;
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use use = { .fhs = sess->fhs };
	const struct rsb_root *root = rsb_nodes_root(sess->nodes);
	struct rsb_lock lock;
	int r = lock_of(req, &lock);

	if (r < 0)
		return r;
	r = rsb_fhs_get(sess->fhs, req->fh, RSB_FH_FILE, &use.file);
	if (r < 0)
		return r;
	if (req->wait)
		return rsb_locks_wait(sess->locks, root, &use, &lock, rq);
	r = rsb_locks_set(sess->locks, root, use.file, &lock);
	return r < 0 ? r : 1;
}

void
rsb_serve_lock(struct rsb_request *rq, const struct rsb_lock_req *req)
{
	int r = take_lock(rq, req);

	/* At 0 it may have been answered by now, and rq be gone. */
	if (r != 0)
		rsb_request_reply(rq, r < 0 ? r : 0, NULL);
}

static int
test_lock(struct rsb_sess *sess, const struct rsb_lock_req *req, struct rsb_getlk_rep *rep)
{
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use use = { .fhs = sess->fhs };
	struct rsb_lock lock;
	int r = lock_of(req, &lock);

	if (r < 0)
		return r;
	r = rsb_fhs_get(sess->fhs, req->fh, RSB_FH_FILE, &use.file);
	if (r < 0)
		return r;
	return rsb_locks_test(sess->locks, use.file, &lock, rep);
}

void
rsb_serve_getlk(struct rsb_request *rq, const struct rsb_lock_req *req)
{
	struct rsb_getlk_rep rep;
	int r = test_lock(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

void
rsb_serve_unlock_all(struct rsb_request *rq, const struct rsb_unlock_all_req *req)
{
	struct rsb_sess *sess = rq->sess;
	RSB_CLEANUP(rsb_fh_use_done) struct rsb_fh_use use = { .fhs = sess->fhs };
	int r = rsb_fhs_get(sess->fhs, req->fh, RSB_FH_FILE, &use.file);

	if (r == 0)
		rsb_locks_drop(sess->locks, use.file, req->owner);
	rsb_request_reply(rq, r, NULL);
}
