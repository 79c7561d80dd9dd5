/* SPDX-License-Identifier: MIT */
#include "fuse/guardload.h"

#include <errno.h>
#include <string.h>

#include "fuse/push.h"
#include "fuse/send.h"
#include "fuse/wrote.h"
#include "keeper/gitnames.h"

#define PARTS_OF(size) ((size) / RSB_IO_MAX + 1) /* which hold more than size */
#define PARTS_MAX PARTS_OF(RSB_GITNAMES_MAX)

/* One reading under way: open and read messages, all sent at once. */
struct load {
	struct rsb_fs *fs;
	struct rsb_fop *fop; /* NULL: told already */
	rsb_fop_fn fn;
	struct rsb_inode *inode; /* referenced */
	uint64_t fh;
	uint64_t serials[PARTS_MAX + 1]; /* of the calls under way, 0: it was answered */
	uint64_t since;
	size_t n_call;
	size_t n_part;
	size_t size; /* where the first part that fell short ended */
	int error;   /* the first */
	uint8_t data[];
};

struct part {
	struct load *load;
	size_t index;
};

static int start(struct rsb_fop *fop, struct rsb_inode *inode, rsb_fop_fn fn, size_t n_part);

/* The link's, or of our own memory: it says nothing of the file. */
static bool
is_ours(int r)
{
	return r == -EIO || r == -ENOTCONN || r == -ETIMEDOUT || r == -ECANCELED || r == -ESTALE ||
	       r == -ENOMEM || r == -ENOBUFS || r == -EBADMSG;
}

static int
judge(struct load *load)
{
	struct rsb_fs *fs = load->fs;
	const struct rsb_bytes text = { .data = load->data, .size = load->size };

	if (load->error && is_ours(load->error))
		return load->error;
	if (load->error)
		return rsb_guard_refuse(fs, load->inode, load->since, "it cannot be read");
	return rsb_guard_judge(fs, load->inode, text, load->since);
}

static void
load_free(struct load *load)
{
	rsb_guard_give_room(load->fs, load->n_part * RSB_IO_MAX);
	free(load);
}

/* The view is good for this answer, whatever else is under way. */
static void
tell(struct rsb_fop *fop, struct rsb_inode *inode, rsb_fop_fn fn, int r)
{
	struct rsb_fs *fs = fop->fs;

	fop->serial = 0;
	if (r >= 0)
		rsb_guard_set_fresh(fs, inode);
	fn(fop, r < 0 ? r : 0, NULL);
	rsb_guard_set_fresh(fs, NULL);
}

static void
finish(struct load *load)
{
	struct rsb_fop *fop = load->fop;
	struct rsb_inode *inode = load->inode;
	rsb_fop_fn fn = load->fn;
	const size_t most = PARTS_OF(rsb_guard_limit(inode));
	int r;

	/* Not before: it would overtake the reads. */
	rsb_send_post(load->fs->send, RSB_OP_release, &(struct rsb_fh_req){ .fh = load->fh });
	/* It has grown: once more. */
	if (fop && !load->error && load->size == load->n_part * RSB_IO_MAX && load->n_part < most &&
		start(fop, inode, fn, rsb_min(4 * load->n_part, most)) >= 0) {
		rsb_inode_unref(inode);
		load_free(load);
		return;
	}
	r = fop ? judge(load) : 0;
	load_free(load);
	if (fop)
		tell(fop, inode, fn, r);
	rsb_inode_unref(inode);
}

/* What may be withdrawn of fop, see fuse/hold.h: one that is under way. */
static void
name_call(const struct load *load)
{
	for (size_t i = 0; load->fop && i < RSB_ARRAY_SIZE(load->serials); i++) {
		if (load->serials[i])
			load->fop->serial = load->serials[i];
	}
}

static void
on_call(struct load *load, size_t index, int r)
{
	struct rsb_fop *fop = load->fop;

	load->serials[index] = 0;
	if (r < 0 && !load->error)
		load->error = r;
	if (--load->n_call == 0) {
		finish(load);
	} else if (fop && r < 0 && is_ours(r)) {
		/* Withdrawn: who waits is told, the others may take as long as they like. */
		load->fop = NULL;
		tell(fop, load->inode, load->fn, r);
	} else {
		name_call(load);
	}
}

static void
on_open(void *arg, int r, const void *rep)
{
	(void)rep;
	on_call(arg, PARTS_MAX, r);
}

static void
on_part(void *arg, int r, const void *rep)
{
	struct part *part = arg;
	struct load *load = part->load;
	const size_t at = part->index * RSB_IO_MAX;
	const size_t index = part->index;
	const struct rsb_read_rep *got = rep;

	free(part);
	if (r >= 0) {
		size_t n = rsb_min(got->data.size, (size_t)RSB_IO_MAX);

		if (n)
			memcpy(load->data + at, got->data.data, n);
		if (n < RSB_IO_MAX)
			load->size = rsb_min(load->size, at + n);
	}
	on_call(load, index, r);
}

static int
send_part(struct load *load, size_t index)
{
	struct part *part = rsb_new(struct part);
	const struct rsb_read_req req = {
		.fh = load->fh,
		.offset = index * RSB_IO_MAX,
		.size = RSB_IO_MAX,
	};
	int r;

	if (!part)
		return -ENOMEM;
	*part = (struct part){ .load = load, .index = index };
	r = rsb_send_call(load->fs->send, RSB_OP_read, &req, on_part, part, &load->serials[index]);
	if (r < 0) {
		free(part);
		return r;
	}
	load->n_call++;
	return 0;
}

/* Negative: nothing was begun, fn will not come. */
static int
start(struct rsb_fop *fop, struct rsb_inode *inode, rsb_fop_fn fn, size_t n_part)
{
	struct rsb_fs *fs = fop->fs;
	struct rsb_open_req req;
	struct load *load;
	int r;

	r = rsb_guard_take_room(fs, n_part * RSB_IO_MAX);
	if (r < 0)
		return r;
	load = calloc(1, sizeof(*load) + n_part * RSB_IO_MAX);
	if (!load) {
		rsb_guard_give_room(fs, n_part * RSB_IO_MAX);
		return -ENOMEM;
	}
	*load = (struct load){
		.fs = fs,
		.fop = fop,
		.fn = fn,
		.inode = inode,
		.fh = rsb_link_new_ids(fs->link, 1),
		.since = fs->seq,
		.n_part = n_part,
		.size = n_part * RSB_IO_MAX,
	};
	req = (struct rsb_open_req){ .node = inode->wire, .fh = load->fh };
	r = rsb_send_call(fs->send, RSB_OP_open, &req, on_open, load, &load->serials[PARTS_MAX]);
	if (r < 0) {
		load_free(load);
		return r;
	}
	(void)rsb_inode_ref(inode);
	load->n_call = 1;
	for (size_t i = 0; i < n_part && r >= 0; i++)
		r = send_part(load, i);
	if (r < 0)
		load->error = r;
	name_call(load);
	return 0;
}

/* What we wrote ourselves need not be asked for, while nobody else can change it. */
static bool
use_own(struct rsb_fop *fop, struct rsb_inode *inode, rsb_fop_fn fn)
{
	struct rsb_fs *fs = fop->fs;
	struct rsb_bytes own;
	int r;

	if (!rsb_cache_valid(&fs->cache, rsb_wrote_generation(inode)) ||
		!rsb_wrote_get(inode, &own))
		return false;
	r = rsb_guard_judge(fs, inode, own, fs->seq);
	tell(fop, inode, fn, r);
	return true;
}

/* It is read and judged. */
static void
look(struct rsb_fop *fop, struct rsb_inode *inode, rsb_fop_fn fn)
{
	int r;

	if (use_own(fop, inode, fn))
		return;
	rsb_push_inode(fop->fs, inode);
	if (inode->attr.size > rsb_guard_limit(inode)) {
		r = rsb_guard_refuse_long(fop->fs, inode, fop->fs->seq);
		tell(fop, inode, fn, r);
		return;
	}
	r = start(fop, inode, fn, PARTS_OF((size_t)inode->attr.size));
	if (r < 0)
		fn(fop, r, NULL);
}

void
rsb_guard_then(struct rsb_fop *fop, struct rsb_inode *inode, rsb_fop_fn fn)
{
	if (rsb_guard_ready(fop->fs, inode))
		fn(fop, 0, NULL);
	else
		look(fop, inode, fn);
}

void
rsb_guard_then_read(struct rsb_fop *fop, struct rsb_inode *inode, rsb_fop_fn fn)
{
	if (rsb_guard_readable(fop->fs, inode))
		fn(fop, 0, NULL);
	else
		look(fop, inode, fn);
}
