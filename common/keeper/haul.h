/* SPDX-License-Identifier: MIT */
#ifndef RSB_HAUL_H
#define RSB_HAUL_H

/*
 * Trees on their way into a workspace and out of it: a link of its own, on which one call after the
 * other is made, each with a stream there, and most with one back. Every function waits, and fails
 * with -ETIMEDOUT when nothing moved for the timeout of far, or all of it takes longer than it may.
 * Not thread-safe.
 */

#include "keeper/sync.h"
#include "proto/op.h"

struct rsb_haul;

enum rsb_haul_what {
	RSB_HAUL_IN = 0, /* write an archive; nothing to read */
	RSB_HAUL_LIST = RSB_TREE_LIST,
	RSB_HAUL_PACK = RSB_TREE_PACK,
	RSB_HAUL_REMOVE = RSB_TREE_REMOVE,
	RSB_HAUL_CHANGES = RSB_TREE_CHANGES,
};

rsb_nodiscard int rsb_haul_open(
	const struct rsb_sync_far *far, struct rsb_haul **ret_haul, struct rsb_diag *diag);
/* The same in two steps, for who may want to give up in between. What far points to is borrowed. */
rsb_nodiscard int rsb_haul_new(const struct rsb_sync_far *far, struct rsb_haul **ret_haul);
rsb_nodiscard int rsb_haul_connect(struct rsb_haul *haul, struct rsb_diag *diag);
/* {any} Whoever waits, and whatever comes after, fails with r. */
void rsb_haul_abort(struct rsb_haul *haul, int r);
/* Also ends what is under way. NULL is fine. */
void rsb_haul_free(struct rsb_haul *haul);
RSB_DEFINE_CLEANUP(struct rsb_haul *, rsb_haul_free)

/* A call, after the one before was finished. */
rsb_nodiscard int rsb_haul_begin(
	struct rsb_haul *haul, enum rsb_haul_what what, struct rsb_diag *diag);
/* The far side's error, if it gave up meanwhile. */
rsb_nodiscard int rsb_haul_write(struct rsb_haul *haul, struct rsb_bytes data);
rsb_nodiscard int rsb_haul_end_writing(struct rsb_haul *haul);
/* Appends what came to out. 1: there may be more; 0: that was all. */
rsb_nodiscard int rsb_haul_read(struct rsb_haul *haul, struct rsb_buf *out);
/* That came by all calls together, as rsb_haul_read() gave them. */
uint64_t rsb_haul_bytes(const struct rsb_haul *haul);
/* After the last byte both ways: what came of it. */
rsb_nodiscard int rsb_haul_finish(struct rsb_haul *haul, struct rsb_diag *diag);
/* Before CHANGES is begun: the list that is known, as the sandbox calls it; 0: none. */
void rsb_haul_set_since(struct rsb_haul *haul, uint64_t since);
/* After a call with a stream to us went well: what the sandbox says of it. */
struct rsb_haul_said {
	uint64_t entries; /* that it went through */
	uint64_t since;   /* CHANGES: the same, or 0: it came whole */
	uint64_t kept;    /* CHANGES: what the next one may be since; 0: nothing */
};
void rsb_haul_said(const struct rsb_haul *haul, struct rsb_haul_said *ret_said);
/* After that went well: what is not quite as here; empty: nothing. */
const char *rsb_haul_remark(const struct rsb_haul *haul);
/* The sentence about what went wrong over there. */
void rsb_haul_explain(struct rsb_haul *haul, int r, struct rsb_diag *diag);

#endif
