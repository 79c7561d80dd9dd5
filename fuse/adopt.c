/* SPDX-License-Identifier: MIT */
#include "fuse/adopt.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/alias.h"
#include "fuse/revive.h"
#include "fuse/seen.h"
#include "fuse/send.h"
#include "proto/codec.h"
#include "proto/version.h"

#define BATCH 512u
#define BATCHES_MAX 4u /* under way */
#define FAILED_MAX 65536u
#define CLIMB_MAX 4096u

struct rsb_adopt {
	struct rsb_fs *fs;
	size_t n_ref; /* the owner's, and one for each batch under way */
	bool given_up;
	size_t cursor;
	uint8_t *said;         /* bits, by index of the node */
	struct rsb_map failed; /* by id; over the maximum they are not tried again */
	size_t at_failed;      /* a cursor of it */
	uint64_t failed_id;    /* the one at hand; 0: none */
	size_t at_alias;       /* of it */
	bool again;            /* all were said once */
	size_t n_batch;        /* under way */
	size_t n_said;
	size_t n_failed;
};

static uint32_t
index_of(const struct rsb_inode *inode)
{
	return (uint32_t)inode->nodeid;
}

int
rsb_adopt_new(struct rsb_fs *fs, struct rsb_adopt **ret_adopt)
{
	RSB_CLEANUP(rsb_adopt_freep) struct rsb_adopt *adopt = rsb_new(struct rsb_adopt);

	if (!adopt)
		return -ENOMEM;
	adopt->fs = fs;
	adopt->n_ref = 1;
	rsb_map_init(&adopt->failed, FAILED_MAX);
	adopt->said = calloc(1, fs->shared->head.n_node / CHAR_BIT + 1);
	if (!adopt->said)
		return -ENOMEM;
	*ret_adopt = rsb_steal(&adopt);
	return 0;
}

static void
unref(struct rsb_adopt *adopt)
{
	if (--adopt->n_ref)
		return;
	free(adopt->said);
	rsb_map_done(&adopt->failed);
	free(adopt);
}

void
rsb_adopt_free(struct rsb_adopt *adopt)
{
	if (!adopt)
		return;
	adopt->given_up = true;
	unref(adopt);
}

size_t
rsb_adopt_count(const struct rsb_adopt *adopt)
{
	return adopt->n_said - rsb_min(adopt->n_failed, adopt->n_said);
}

/* ---- which one is next ---- */

static bool
was_said(const struct rsb_adopt *adopt, const struct rsb_inode *inode)
{
	uint32_t i = index_of(inode);

	return i == 1 || adopt->said[i / CHAR_BIT] & 1u << i % CHAR_BIT;
}

/* inode, or the highest directory above it that was not said. NULL: there is no way to name it. */
static struct rsb_inode *
first_on_the_way(const struct rsb_adopt *adopt, struct rsb_inode *inode)
{
	struct rsb_inode *parent;

	for (unsigned int i = 0; i < CLIMB_MAX; i++) {
		if (!rsb_seen_last(inode, &parent))
			return NULL;
		if (was_said(adopt, parent))
			return inode;
		inode = parent;
	}
	return NULL;
}

/* Whatever comes of it: it is not looked at again. */
static void
mark(struct rsb_adopt *adopt, const struct rsb_inode *inode)
{
	uint32_t i = index_of(inode);

	adopt->said[i / CHAR_BIT] |= (uint8_t)(1u << i % CHAR_BIT);
}

static struct rsb_inode *
next_node(struct rsb_adopt *adopt)
{
	struct rsb_inodes *inodes = adopt->fs->inodes;
	struct rsb_inode *inode, *first;
	size_t cursor = adopt->cursor;

	/* Those that came since begin beyond the bits: none comes before the link goes on. */
	while ((inode = rsb_inode_next(inodes, &cursor))) {
		if (was_said(adopt, inode)) {
			adopt->cursor = cursor;
			continue;
		}
		first = first_on_the_way(adopt, inode);
		mark(adopt, first ? first : inode);
		if (first)
			return first;
		cursor = adopt->cursor;
	}
	adopt->cursor = cursor;
	return NULL;
}

/* ---- batches ---- */

static int
append(const struct rsb_inode *inode, const struct rsb_inode *parent, struct rsb_bytes name,
	struct rsb_buf *out)
{
	const struct rsb_adopt_one one = {
		.node = inode->wire,
		.type = inode->attr.mode & S_IFMT,
		.n_given = rsb_max(rsb_inode_given_count(inode), UINT64_C(1)),
		.parent = parent->id,
		.name = name,
	};

	return rsb_seq_append(&rsb_desc_rsb_adopt_one, &one, RSB_PROTO_VERSION, out);
}

/* Appends what fits: how many, 0: that was all. */
static int
fill_nodes(struct rsb_adopt *adopt, struct rsb_buf *out)
{
	struct rsb_inode *inode, *parent;
	int n = 0, r;

	while (n < (int)BATCH && (inode = next_node(adopt))) {
		const char *name = rsb_seen_last(inode, &parent);

		r = append(inode, parent, rsb_bytes_str(name), out);
		if (r < 0)
			return r;
		n++;
	}
	adopt->n_said += (size_t)n;
	return n;
}

/* The next name of one that failed. NULL: there is none. */
static const char *
next_alias(struct rsb_adopt *adopt, struct rsb_inode **ret_inode, struct rsb_inode **ret_parent)
{
	const char *name = NULL;

	for (;;) {
		*ret_inode = adopt->failed_id ? rsb_inode_by_id(adopt->fs->inodes, adopt->failed_id)
					      : NULL;
		name = *ret_inode ? rsb_alias_get(*ret_inode, adopt->at_alias++, ret_parent) : NULL;
		if (name && *ret_parent)
			return name;
		if (name)
			continue;
		adopt->at_alias = 0;
		adopt->failed_id = 0;
		if (!rsb_map_next(&adopt->failed, &adopt->at_failed, &adopt->failed_id))
			return NULL;
	}
}

static int
fill_aliases(struct rsb_adopt *adopt, struct rsb_buf *out)
{
	struct rsb_inode *inode, *parent;
	const char *name;
	int n = 0, r;

	adopt->again = true;
	while (n < (int)BATCH && (name = next_alias(adopt, &inode, &parent))) {
		r = append(inode, parent, rsb_bytes_str(name), out);
		if (r < 0)
			return r;
		n++;
	}
	return n;
}

static void
on_adopted(void *arg, int r, const void *rep)
{
	struct rsb_adopt *adopt = arg;
	const struct rsb_adopt_rep *got = rep;
	struct rsb_adopt_failed failed;
	struct rsb_seq seq;

	adopt->n_batch--;
	if (r >= 0) {
		seq = got->failed;
		while (rsb_seq_next(&seq, &rsb_desc_rsb_adopt_failed, &failed) > 0) {
			if (adopt->again)
				continue;
			adopt->n_failed++;
			/* Over the maximum it is not tried again. */
			(void)!rsb_map_put(&adopt->failed, failed.id, adopt);
		}
	}
	if (!adopt->given_up && !rsb_revive_is_over(r))
		rsb_revive_step(adopt->fs->revive);
	unref(adopt);
}

/* fill: one of those above. 1: a batch is on its way; 0: there is nothing left. */
static int
send_batch(struct rsb_adopt *adopt, int (*fill)(struct rsb_adopt *adopt, struct rsb_buf *out))
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = RSB_MESSAGE_MAX };
	struct rsb_adopt_req req;
	int n, r;

	n = fill(adopt, &buf);
	if (n <= 0)
		return n;
	req.nodes = rsb_seq_of(&buf, (size_t)n);
	r = rsb_send_first(adopt->fs->send, RSB_OP_adopt, &req, on_adopted, adopt);
	if (r < 0)
		return r;
	adopt->n_ref++;
	adopt->n_batch++;
	return 1;
}

int
rsb_adopt_step(struct rsb_adopt *adopt)
{
	int r = 1;

	while (r == 1 && adopt->n_batch < BATCHES_MAX) {
		r = send_batch(adopt, fill_nodes);
		/* Only when all have been answered it is known which are to be tried again. */
		if (r == 0 && adopt->n_batch == 0)
			r = send_batch(adopt, fill_aliases);
		else if (r == 0)
			return 0;
	}
	return r < 0 ? r : r == 0 && adopt->n_batch == 0;
}
