/* SPDX-License-Identifier: MIT */
/* Names come into being: lookup, forget, mknod, mkdir, symlink; and readlink. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sidecar/own.h"
#include "sidecar/place.h"
#include "sidecar/resolve.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"

#define MODE_BITS UINT64_C(07777)

static int
lookup(struct rsb_nodes *nodes, const struct rsb_lookup_req *req, struct rsb_entry_rep *rep)
{
	RSB_CLEANUP(rsb_place_done) struct rsb_place place = RSB_PLACE_EMPTY;
	int r = rsb_place_init(&place, nodes, &req->parent, req->name);

	if (r < 0)
		return r;
	rsb_autoclose int fd = rsb_place_child(&place);
	if (fd < 0)
		return fd;
	return rsb_place_enter(&place, nodes, req->id, &fd, rep);
}

void
rsb_serve_lookup(struct rsb_request *rq, const struct rsb_lookup_req *req)
{
	struct rsb_entry_rep rep = { .id = 0 };
	int r = lookup(rq->sess->nodes, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

void
rsb_serve_forget(struct rsb_request *rq, const struct rsb_forget_req *req)
{
	struct rsb_seq seq = req->nodes;
	struct rsb_forget_one one;
	int r;

	while ((r = rsb_seq_next(&seq, &rsb_desc_rsb_forget_one, &one)) > 0)
		rsb_nodes_forget(rq->sess->nodes, one.id, one.n);
	rsb_request_reply(rq, r, NULL);
}

static int
readlink_node(
	struct rsb_nodes *nodes, const struct rsb_readlink_req *req, char *target, size_t *ret_size)
{
	struct stat st;
	rsb_autoclose int fd = rsb_resolve(nodes, &req->node);

	if (fd < 0)
		return fd;
	/* With an empty name the kernel says ENOENT about all that is no link. */
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return -EINVAL;
	ssize_t n = readlinkat(fd, "", target, RSB_PATH_MAX + 1);
	if (n < 0)
		return -errno;
	if ((size_t)n > RSB_PATH_MAX)
		return -ENAMETOOLONG;
	*ret_size = (size_t)n;
	return 0;
}

void
rsb_serve_readlink(struct rsb_request *rq, const struct rsb_readlink_req *req)
{
	char target[RSB_PATH_MAX + 1];
	struct rsb_readlink_rep rep = { .target = { .data = (const uint8_t *)target } };
	int r = readlink_node(rq->sess->nodes, req, target, &rep.target.size);

	rsb_request_reply(rq, r, &rep);
}

/* What all that make a name have in common. */
struct making {
	struct rsb_place place;
	struct rsb_own own;
	uint64_t id;
};

static void
making_done(struct making *mk)
{
	rsb_place_done(&mk->place);
}

/* Nothing is made before all that can be refused was looked at. */
static int
making_init(struct making *mk, const struct rsb_sess *sess, const struct rsb_node *parent,
	struct rsb_bytes name, const struct rsb_who *who)
{
	int r = rsb_nodes_offer(sess->nodes, mk->id);

	if (r < 0)
		return r;
	r = rsb_own_init(&mk->own, sess->config, who);
	if (r < 0)
		return r;
	return rsb_place_init(&mk->place, sess->nodes, parent, name);
}

static int
made(const struct making *mk, struct rsb_nodes *nodes, struct rsb_entry_rep *rep)
{
	rsb_autoclose int fd = rsb_place_child(&mk->place);

	if (fd < 0)
		return fd;
	int r = rsb_place_enter(&mk->place, nodes, mk->id, &fd, rep);
	if (r < 0)
		return r;
	return rsb_place_attr(&mk->place, nodes, &rep->dir);
}

static int
check_mknod_mode(uint64_t mode)
{
	if (mode & ~(MODE_BITS | S_IFMT))
		return -EINVAL;
	switch (mode & S_IFMT) {
	case 0:
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
	case S_IFCHR:
	case S_IFBLK:
		return 0;
	default:
		return -EINVAL;
	}
}

static int
make_node(struct rsb_sess *sess, const struct rsb_mknod_req *req, struct rsb_entry_rep *rep)
{
	RSB_CLEANUP(making_done)
	struct making mk = { .place = RSB_PLACE_EMPTY, .id = req->id };
	int r = check_mknod_mode(req->mode);

	if (r < 0)
		return r;
	r = making_init(&mk, sess, &req->parent, req->name, &req->who);
	if (r < 0)
		return r;
	r = rsb_own_begin(&mk.own);
	if (r < 0)
		return r;
	r = mknodat(mk.place.dir_fd, mk.place.name, (mode_t)req->mode, (dev_t)req->rdev);
	rsb_own_end(&mk.own);
	return r < 0 ? -errno : made(&mk, sess->nodes, rep);
}

void
rsb_serve_mknod(struct rsb_request *rq, const struct rsb_mknod_req *req)
{
	struct rsb_entry_rep rep = { .id = 0 };
	int r = make_node(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

static int
make_dir(struct rsb_sess *sess, const struct rsb_mkdir_req *req, struct rsb_entry_rep *rep)
{
	RSB_CLEANUP(making_done)
	struct making mk = { .place = RSB_PLACE_EMPTY, .id = req->id };
	int r = making_init(&mk, sess, &req->parent, req->name, &req->who);

	if (r < 0)
		return r;
	r = rsb_own_begin(&mk.own);
	if (r < 0)
		return r;
	r = mkdirat(mk.place.dir_fd, mk.place.name, (mode_t)(req->mode & MODE_BITS));
	rsb_own_end(&mk.own);
	return r < 0 ? -errno : made(&mk, sess->nodes, rep);
}

void
rsb_serve_mkdir(struct rsb_request *rq, const struct rsb_mkdir_req *req)
{
	struct rsb_entry_rep rep = { .id = 0 };
	int r = make_dir(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

static int
make_link(struct rsb_sess *sess, const struct rsb_symlink_req *req, struct rsb_entry_rep *rep)
{
	RSB_CLEANUP(making_done)
	struct making mk = { .place = RSB_PLACE_EMPTY, .id = req->id };
	char target[RSB_PATH_MAX + 1];
	int r;

	/* An empty target is the kernel's to refuse. */
	if (req->target.size > RSB_PATH_MAX)
		return -ENAMETOOLONG;
	if (req->target.size && memchr(req->target.data, 0, req->target.size))
		return -EINVAL;
	memcpy(target, req->target.size ? req->target.data : (const uint8_t *)"", req->target.size);
	target[req->target.size] = '\0';

	r = making_init(&mk, sess, &req->parent, req->name, &req->who);
	if (r < 0)
		return r;
	r = rsb_own_begin(&mk.own);
	if (r < 0)
		return r;
	r = symlinkat(target, mk.place.dir_fd, mk.place.name);
	rsb_own_end(&mk.own);
	return r < 0 ? -errno : made(&mk, sess->nodes, rep);
}

void
rsb_serve_symlink(struct rsb_request *rq, const struct rsb_symlink_req *req)
{
	struct rsb_entry_rep rep = { .id = 0 };
	int r = make_link(rq->sess, req, &rep);

	rsb_request_reply(rq, r, &rep);
}
