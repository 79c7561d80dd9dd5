/* SPDX-License-Identifier: MIT */
/* Names that change hands: unlink, rmdir, rename, link. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sidecar/place.h"
#include "sidecar/resolve.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"

/* Something that has a name, held so that it can be looked at when it has lost it. */
struct held {
	int fd; /* O_PATH; -1: nothing */
	struct rsb_ident ident;
};

#define HELD_NONE        \
	{                \
		.fd = -1 \
	}

static void
held_done(struct held *held)
{
	if (held->fd >= 0)
		(void)close(held->fd);
}

static int
hold(struct held *held, struct rsb_nodes *nodes, const struct rsb_place *place)
{
	rsb_autoclose int fd = rsb_place_child(place);

	if (fd < 0)
		return fd;
	int r = rsb_root_ident(rsb_nodes_root(nodes), fd, "", &held->ident, NULL);
	if (r < 0)
		return r;
	held->fd = rsb_steal_fd(&fd);
	return 0;
}

static bool
is_dir(const struct held *held)
{
	return held->ident.type == S_IFDIR;
}

/*
 * Its id and attributes after the operation. A link or rename in an overlay may have copied it,
 * which gives it another birth time: that is noted before it is looked for again.
 */
static int
look_again(struct held *held, struct rsb_nodes *nodes, uint64_t *ret_id, struct rsb_attr *ret_attr)
{
	uint64_t id = rsb_nodes_find(nodes, &held->ident);
	int r = rsb_nodes_attr(nodes, id, held->fd, ret_attr);

	if (r < 0)
		return r;
	held->ident.btime_sec = ret_attr->btime.sec;
	held->ident.btime_nsec = (uint32_t)ret_attr->btime.nsec;
	*ret_id = id;
	return 0;
}

/* It lost the name of place: tells the table, and what the reply says of it. */
static int
lost_name(struct held *held, struct rsb_nodes *nodes, const struct rsb_place *place,
	uint64_t *ret_id, struct rsb_attr *ret_attr)
{
	int r = look_again(held, nodes, ret_id, ret_attr);

	if (r < 0)
		return r;
	/* Some file systems count no links of directories; a removed one is gone. */
	if (is_dir(held))
		ret_attr->nlink = 0;
	rsb_nodes_unnamed(nodes, &held->ident, place->dir, place->name, ret_attr->nlink == 0);
	return 0;
}

static int
remove_name(struct rsb_nodes *nodes, const struct rsb_unlink_req *req, int flags,
	struct rsb_unlink_rep *rep)
{
	RSB_CLEANUP(rsb_place_done) struct rsb_place place = RSB_PLACE_EMPTY;
	RSB_CLEANUP(held_done) struct held victim = HELD_NONE;
	int r = rsb_place_init(&place, nodes, &req->parent, req->name);

	if (r < 0)
		return r;
	r = hold(&victim, nodes, &place);
	if (r < 0)
		return r;
	if (unlinkat(place.dir_fd, place.name, flags) < 0)
		return -errno;
	r = lost_name(&victim, nodes, &place, &rep->id, &rep->attr);
	if (r < 0)
		return r;
	return rsb_place_attr(&place, nodes, &rep->dir);
}

void
rsb_serve_unlink(struct rsb_request *rq, const struct rsb_unlink_req *req)
{
	struct rsb_unlink_rep rep = { .id = 0 };
	int r = remove_name(rq->sess->nodes, req, 0, &rep);

	rsb_request_reply(rq, r, &rep);
}

void
rsb_serve_rmdir(struct rsb_request *rq, const struct rsb_unlink_req *req)
{
	struct rsb_unlink_rep rep = { .id = 0 };
	int r = remove_name(rq->sess->nodes, req, AT_REMOVEDIR, &rep);

	rsb_request_reply(rq, r, &rep);
}

struct renaming {
	struct rsb_place from;
	struct rsb_place to;
	struct held moved;
	struct held over; /* what has the new name, if anything */
	unsigned int flags;
};

static void
renaming_done(struct renaming *rn)
{
	held_done(&rn->moved);
	held_done(&rn->over);
	rsb_place_done(&rn->from);
	rsb_place_done(&rn->to);
}

static int
renaming_init(struct renaming *rn, struct rsb_nodes *nodes, const struct rsb_rename_req *req)
{
	int r;

	if (req->flags & ~(uint64_t)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	rn->flags = (unsigned int)req->flags;
	r = rsb_place_init(&rn->from, nodes, &req->parent, req->name);
	if (r < 0)
		return r;
	r = rsb_place_init(&rn->to, nodes, &req->newparent, req->newname);
	if (r < 0)
		return r;
	r = hold(&rn->moved, nodes, &rn->from);
	if (r < 0)
		return r;
	r = hold(&rn->over, nodes, &rn->to);
	return r == -ENOENT ? 0 : r;
}

static int
do_rename(const struct renaming *rn)
{
	const struct rsb_place *from = &rn->from;
	const struct rsb_place *to = &rn->to;

	/* Without flags every file system takes the old call. */
	if (rn->flags == 0)
		return renameat(from->dir_fd, from->name, to->dir_fd, to->name) < 0 ? -errno : 0;
	return renameat2(from->dir_fd, from->name, to->dir_fd, to->name, rn->flags) < 0 ? -errno
											: 0;
}

/* Of what had the new name before. */
static int
replaced(struct renaming *rn, struct rsb_nodes *nodes, struct rsb_rename_rep *rep)
{
	int r;

	if (!(rn->flags & RENAME_EXCHANGE))
		return lost_name(&rn->over, nodes, &rn->to, &rep->over_id, &rep->over);
	r = look_again(&rn->over, nodes, &rep->over_id, &rep->over);
	if (r == 0) {
		rsb_nodes_unnamed(nodes, &rn->over.ident, rn->to.dir, rn->to.name, false);
		rsb_nodes_named(nodes, &rn->over.ident, rn->from.dir, rn->from.name);
	}
	return r;
}

/* The names are changed: tells the table, and what the reply says. */
static int
renamed(struct renaming *rn, struct rsb_nodes *nodes, struct rsb_rename_rep *rep)
{
	uint64_t id;
	int r = look_again(&rn->moved, nodes, &id, &rep->attr);

	if (r < 0)
		return r;
	if (rn->over.fd >= 0 && rsb_ident_same(&rn->moved.ident, &rn->over.ident)) {
		/* Two names of one inode: rename(2) did nothing, and both stay. */
		rep->over_id = id;
		rep->over = rep->attr;
		return 0;
	}
	if (rn->over.fd >= 0) {
		r = replaced(rn, nodes, rep);
		if (r < 0)
			return r;
	}
	rsb_nodes_unnamed(nodes, &rn->moved.ident, rn->from.dir, rn->from.name, false);
	rsb_nodes_named(nodes, &rn->moved.ident, rn->to.dir, rn->to.name);
	return 0;
}

static int
rename_node(struct rsb_nodes *nodes, const struct rsb_rename_req *req, struct rsb_rename_rep *rep)
{
	RSB_CLEANUP(renaming_done)
	struct renaming rn = {
		.from = RSB_PLACE_EMPTY,
		.to = RSB_PLACE_EMPTY,
		.moved = HELD_NONE,
		.over = HELD_NONE,
	};
	int r = renaming_init(&rn, nodes, req);

	if (r < 0)
		return r;
	r = do_rename(&rn);
	if (r < 0)
		return r;
	r = renamed(&rn, nodes, rep);
	if (r < 0)
		return r;
	r = rsb_place_attr(&rn.from, nodes, &rep->dir);
	if (r < 0)
		return r;
	return rsb_place_attr(&rn.to, nodes, &rep->newdir);
}

void
rsb_serve_rename(struct rsb_request *rq, const struct rsb_rename_req *req)
{
	struct rsb_rename_rep rep = { .over_id = 0 };
	int r = rename_node(rq->sess->nodes, req, &rep);

	rsb_request_reply(rq, r, &rep);
}

/* linkat(2) from a descriptor alone needs a capability; through /proc it does not. */
static int
link_fd(const struct rsb_root *root, int fd, const struct rsb_place *to)
{
	char name[RSB_PROC_NAME_SIZE];

	if (linkat(fd, "", to->dir_fd, to->name, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	int proc_fd = rsb_root_proc_link(root, fd, name);
	if (proc_fd < 0)
		return proc_fd;
	return linkat(proc_fd, name, to->dir_fd, to->name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int
link_node(struct rsb_nodes *nodes, const struct rsb_link_req *req, struct rsb_entry_rep *rep)
{
	RSB_CLEANUP(rsb_place_done) struct rsb_place place = RSB_PLACE_EMPTY;
	rsb_autoclose int fd = rsb_resolve(nodes, &req->node);
	struct stat st;

	if (fd < 0)
		return fd;
	/* The same answer from every kernel, whatever way is taken. */
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EPERM;
	int r = rsb_place_init(&place, nodes, &req->newparent, req->newname);
	if (r < 0)
		return r;
	r = link_fd(rsb_nodes_root(nodes), fd, &place);
	if (r < 0)
		return r;
	/* Notes a new birth time, as look_again() does. */
	r = rsb_nodes_attr(nodes, req->node.id, fd, &rep->attr);
	if (r < 0)
		return r;
	/* The id is offered for the inode that has it, so nothing new can come of it. */
	r = rsb_place_enter(&place, nodes, req->node.id, &fd, rep);
	if (r < 0)
		return r;
	return rsb_place_attr(&place, nodes, &rep->dir);
}

void
rsb_serve_link(struct rsb_request *rq, const struct rsb_link_req *req)
{
	struct rsb_entry_rep rep = { .id = 0 };
	int r = link_node(rq->sess->nodes, req, &rep);

	rsb_request_reply(rq, r, &rep);
}
