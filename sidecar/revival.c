/* SPDX-License-Identifier: MIT */
#include "sidecar/revival.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sidecar/adopt.h"
#include "sidecar/fh.h"
#include "sidecar/journal.h"
#include "sidecar/opening.h"
#include "sidecar/sess.h"
#include "util/cleanup.h"

/* A file that could not be opened again so far. */
struct late {
	struct rsb_list link;
	struct rsb_open_req req;
};

struct rsb_revival {
	uint64_t begun;          /* const */
	uint64_t first_call;     /* const */
	struct rsb_list late;    /* {mutator} */
	struct rsb_map released; /* {mutator} */
};

int
rsb_revival_new(uint64_t begun, uint64_t first_call, struct rsb_revival **ret_revival)
{
	struct rsb_revival *revival = rsb_new(struct rsb_revival);

	if (!revival)
		return -ENOMEM;
	revival->begun = begun;
	revival->first_call = first_call;
	rsb_list_init(&revival->late);
	rsb_map_init(&revival->released, RSB_FHS_MAX);
	*ret_revival = revival;
	return 0;
}

void
rsb_revival_free(struct rsb_revival *revival)
{
	struct rsb_list *pos, *tmp;

	if (!revival)
		return;
	rsb_list_for_each_safe (pos, tmp, &revival->late)
		free(rsb_list_entry(pos, struct late, link));
	rsb_map_done(&revival->released);
	free(revival);
}

bool
rsb_revival_has(const struct rsb_revival *revival, const struct rsb_call_head *head)
{
	if (!revival || head->id >= revival->first_call)
		return false;
	/* after is the number before its own. */
	if (rsb_ops[head->op].flags & RSB_OP_WRITES)
		return head->after < revival->begun;
	return head->op == RSB_OP_spawn || head->op == RSB_OP_tar_in || head->op == RSB_OP_tree_out;
}

bool
rsb_revival_released(const struct rsb_revival *revival, uint64_t fh)
{
	return revival && rsb_map_get(&revival->released, fh);
}

/* ---- what a mutation did to our tables ---- */

static void
made(struct rsb_sess *sess, const struct rsb_node *dir, struct rsb_bytes name,
	const struct rsb_entry_rep *rep)
{
	RSB_CLEANUP(rsb_place_done) struct rsb_place place = RSB_PLACE_EMPTY;
	const struct rsb_adopt_one one = {
		.node = { .id = rep->id, .ino = rep->attr.ino, .btime = rep->attr.btime },
		.type = rep->attr.mode & S_IFMT,
		.parent = dir->id,
		.name = name,
	};

	/* Who uses it is told that it is not there. */
	(void)!rsb_adopt_node(sess->nodes, &place, &one);
}

/* Something got this name. */
static void
named(struct rsb_sess *sess, const struct rsb_node *dir, struct rsb_bytes name)
{
	RSB_CLEANUP(rsb_place_done) struct rsb_place place = RSB_PLACE_EMPTY;
	struct rsb_ident ident;

	if (rsb_place_init(&place, sess->nodes, dir, name) < 0)
		return;
	rsb_autoclose int fd = rsb_place_child(&place);
	if (fd >= 0 && rsb_root_ident(rsb_nodes_root(sess->nodes), fd, "", &ident, NULL) == 0)
		rsb_nodes_named(sess->nodes, &ident, place.dir, place.name);
}

static void
opened(struct rsb_sess *sess, const struct rsb_open_req *req)
{
	struct rsb_attr_rep rep;
	struct late *late;

	if (rsb_opening_again(sess, req, &rep) != -ESTALE)
		return;
	late = rsb_new(struct late);
	if (!late)
		return;
	late->req = *req;
	rsb_list_append(&sess->revival->late, &late->link);
}

static void
open_late(struct rsb_sess *sess)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, &sess->revival->late) {
		struct late *late = rsb_list_entry(pos, struct late, link);
		struct rsb_attr_rep rep;

		if (rsb_opening_again(sess, &late->req, &rep) == -ESTALE)
			continue;
		rsb_list_remove(&late->link);
		free(late);
	}
}

static void
released(struct rsb_sess *sess, uint64_t fh)
{
	struct rsb_list *pos, *tmp;
	struct rsb_fh *file;

	/* Without memory for it the file stays open at worst. */
	(void)!rsb_map_put(&sess->revival->released, fh, sess);
	rsb_list_for_each_safe (pos, tmp, &sess->revival->late) {
		struct late *late = rsb_list_entry(pos, struct late, link);

		if (late->req.fh != fh)
			continue;
		rsb_list_remove(&late->link);
		free(late);
	}
	if (rsb_fhs_remove(sess->fhs, fh, RSB_FH_FILE, &file) < 0)
		return;
	rsb_nodes_unpin(sess->nodes, file->node);
	rsb_fhs_put(sess->fhs, file);
}

static void
created(struct rsb_sess *sess, const struct rsb_create_req *req, const struct rsb_entry_rep *rep)
{
	const struct rsb_open_req open = {
		.node = { .id = rep->id },
		.fh = req->fh,
		.flags = req->flags,
	};

	made(sess, &req->parent, req->name, rep);
	opened(sess, &open);
}

static void
renamed(struct rsb_sess *sess, const struct rsb_rename_req *req)
{
	named(sess, &req->newparent, req->newname);
	if (req->flags & RENAME_EXCHANGE)
		named(sess, &req->parent, req->name);
}

union request {
	struct rsb_mknod_req mknod;
	struct rsb_mkdir_req mkdir;
	struct rsb_symlink_req symlink;
	struct rsb_link_req link;
	struct rsb_open_req open;
	struct rsb_create_req create;
	struct rsb_rename_req rename;
};

static void
apply(struct rsb_request *rq, const struct rsb_entry_rep *rep)
{
	const union request *req = (const void *)rq->req;
	struct rsb_sess *sess = rq->sess;

	switch (rq->op) {
	case RSB_OP_mknod:
		made(sess, &req->mknod.parent, req->mknod.name, rep);
		break;
	case RSB_OP_mkdir:
		made(sess, &req->mkdir.parent, req->mkdir.name, rep);
		break;
	case RSB_OP_symlink:
		made(sess, &req->symlink.parent, req->symlink.name, rep);
		break;
	case RSB_OP_link:
		made(sess, &req->link.newparent, req->link.newname, rep);
		break;
	case RSB_OP_create:
		created(sess, &req->create, rep);
		break;
	case RSB_OP_open:
		opened(sess, &req->open);
		break;
	case RSB_OP_rename:
		renamed(sess, &req->rename);
		break;
	default:
		break; /* the others leave no trace in a table, or what they left is gone */
	}
}

/* The reply of before, if it is one that succeeded. */
static bool
decode(struct rsb_request *rq, struct rsb_entry_rep *ret_rep)
{
	struct rsb_call_head head;

	*ret_rep = (struct rsb_entry_rep){ .id = 0 };
	if (rq->bad < 0 || rsb_codec_head(rsb_buf_view(&rq->reply), &head) < 0 || head.error < 0)
		return false;
	return rsb_ops[rq->op].rep != &rsb_desc_rsb_entry_rep ||
	       rsb_codec_decode(&rsb_desc_rsb_entry_rep, head.body, ret_rep) == 0;
}

int
rsb_revival_recall(struct rsb_request *rq)
{
	struct rsb_sess *sess = rq->sess;
	const struct rsb_journal_call call = { .fifo = rq->after + 1, .id = rq->id, .op = rq->op };
	struct rsb_entry_rep rep;
	int r = -ENODATA;

	if (rsb_ops[rq->op].flags & RSB_OP_WRITES)
		r = rsb_journal_recall(sess->part, &call, &rq->reply);
	if (r == 0 && decode(rq, &rep))
		apply(rq, &rep);
	/* However it went, nobody uses the file any more. */
	if (rq->op == RSB_OP_release && rq->bad == 0)
		released(sess, ((const struct rsb_fh_req *)(const void *)rq->req)->fh);
	open_late(sess);
	return r == 0 && rsb_buf_len(&rq->reply) <= rq->reserved ? 0 : -ENOTCONN;
}
