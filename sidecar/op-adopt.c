/* SPDX-License-Identifier: MIT */
/* adopt: nodes that the host has from a process of the sidecar that died. */

#include <errno.h>
#include <unistd.h>

#include "proto/errmap.h"
#include "sidecar/place.h"
#include "sidecar/request.h"
#include "sidecar/serve.h"
#include "util/cleanup.h"

struct adoption {
	struct rsb_sess *sess;
	struct rsb_place place; /* of the one before, most often the same directory */
	struct rsb_buf failed;
	uint64_t n_failed;
};

static void
adoption_done(struct adoption *a)
{
	rsb_place_done(&a->place);
	rsb_buf_done(&a->failed);
}

static int
go_to(struct adoption *a, const struct rsb_adopt_one *one)
{
	const struct rsb_node parent = { .id = one->parent };

	if (a->place.dir_fd >= 0 && a->place.dir == one->parent)
		return rsb_root_name(one->name, a->place.name);
	rsb_place_done(&a->place);
	return rsb_place_init(&a->place, a->sess->nodes, &parent, one->name);
}

static bool
is_expected(const struct rsb_adopt_one *one, const struct rsb_ident *found)
{
	return found->ino == one->node.ino && found->type == one->type &&
	       found->btime_sec == one->node.btime.sec && found->btime_nsec == one->node.btime.nsec;
}

static int
adopt(struct adoption *a, const struct rsb_adopt_one *one)
{
	struct rsb_nodes *nodes = a->sess->nodes;
	struct rsb_ident found;
	uint64_t id;
	int r;

	if (one->node.id == RSB_NODE_ROOT || one->n_given == 0)
		return -EINVAL;
	r = go_to(a, one);
	if (r < 0)
		return r;
	rsb_autoclose int fd = rsb_place_child(&a->place);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return -ESTALE;
	if (fd < 0)
		return fd;
	r = rsb_root_ident(rsb_nodes_root(nodes), fd, "", &found, NULL);
	if (r < 0)
		return r;
	if (!is_expected(one, &found))
		return -ESTALE;
	const struct rsb_binding binding = {
		.ident = &found,
		.parent = one->parent,
		.name = a->place.name,
		.id = one->node.id,
		.n_more = one->n_given - 1,
		.dir_fd = &fd,
	};
	r = rsb_nodes_bind(nodes, &binding, &id);
	if (r < 0 || id == one->node.id)
		return r;
	/* Two ids for one inode: the host has made that up. */
	rsb_nodes_forget(nodes, id, one->n_given);
	return -EINVAL;
}

static int
adopt_all(struct adoption *a, struct rsb_seq seq, uint32_t version)
{
	struct rsb_adopt_one one;
	int r;

	while ((r = rsb_seq_next(&seq, &rsb_desc_rsb_adopt_one, &one)) > 0) {
		struct rsb_adopt_failed failed = { .id = one.node.id };

		r = adopt(a, &one);
		if (r == 0)
			continue;
		failed.error = rsb_errmap_to_wire(r);
		r = rsb_seq_append(&rsb_desc_rsb_adopt_failed, &failed, version, &a->failed);
		if (r < 0)
			return r;
		a->n_failed++;
	}
	return r;
}

void
rsb_serve_adopt(struct rsb_request *rq, const struct rsb_adopt_req *req)
{
	RSB_CLEANUP(adoption_done)
	struct adoption a = { .sess = rq->sess, .place = RSB_PLACE_EMPTY };
	struct rsb_adopt_rep rep;
	int r;

	rsb_buf_init(&a.failed, RSB_MESSAGE_MAX);
	r = adopt_all(&a, req->nodes, rq->version);
	rep.failed = rsb_seq_of(&a.failed, a.n_failed);
	rsb_request_reply(rq, r, &rep);
}
