/* SPDX-License-Identifier: MIT */
#ifndef RSB_SNAPSTORE_H
#define RSB_SNAPSTORE_H

/*
 * The snapshots of a sandbox, in its state directory:
 *
 *	snapshots		the index: what there is, with a digest of each file; and its own
 *	snapshot-N.tar.zst	what the sandbox gave; nobody here unpacks it
 *	snapshot-N.tree		as keeper/manifest.h: what is in that, with tombstones (mode 0)
 *	snapshots.lock		flock(2): who takes, restores or removes
 *
 * A base has everything, a delta what changed since the one before it; a chain is a base and the
 * deltas behind it. Files are whole and on the disk before the index names them, and go when it
 * does not name them any more; it is replaced by rename. So whenever somebody is killed, what it
 * names is there. One thread.
 */

#include "backend/backend.h"
#include "keeper/tree.h"
#include "util/diag.h"

/* Each costs two round trips when it is restored, and a line of the index. */
#define RSB_SNAPSTORE_DELTAS_MAX 256u
/* The one that grows, and the one before it: a point to go back to behind a new base. */
#define RSB_SNAPSTORE_CHAINS_MAX 2u
#define RSB_SNAPSTORE_POINTS_MAX (RSB_SNAPSTORE_CHAINS_MAX * (RSB_SNAPSTORE_DELTAS_MAX + 1))
#define RSB_SNAPSTORE_WHY_MAX 15

struct rsb_snappoint {
	uint64_t number;   /* from 1, never twice */
	uint64_t taken_ns; /* wall clock, when the list was made */
	uint64_t base;     /* 1: it stands alone */
	uint64_t fuzzy;    /* 1: commands ran meanwhile, or files changed */
	uint64_t files;    /* names of all kinds in the workspace */
	uint64_t changed;  /* of those, in the archive */
	uint64_t removed;
	uint64_t moved; /* bytes that came for it */
	uint64_t list;  /* what the sidecar calls the list of then; 0: nothing */
	uint64_t archive_size;
	uint64_t tree_size;
	char sandbox[RSB_SANDBOX_ID_MAX + 1];
	char why[RSB_SNAPSTORE_WHY_MAX + 1]; /* "asked", "interval", ... */
	uint8_t archive_sha[RSB_SHA256_SIZE];
	uint8_t tree_sha[RSB_SHA256_SIZE];
};

struct rsb_snapstore;

/*
 * dir: path of the state directory. Held for the caller alone until it is closed; wait_ns: for who
 * has it now. -EBUSY, with a sentence. An index that cannot be read counts as none.
 */
rsb_nodiscard int rsb_snapstore_open(
	const char *dir, uint64_t wait_ns, struct rsb_snapstore **ret_store, struct rsb_diag *diag);
/* Only to look, whoever has it. -EBADMSG with a sentence: the index is damaged. */
rsb_nodiscard int rsb_snapstore_look(
	const char *dir, struct rsb_snapstore **ret_store, struct rsb_diag *diag);
void rsb_snapstore_close(struct rsb_snapstore *store); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_snapstore *, rsb_snapstore_close)

/* The oldest first. Borrowed until the next change. */
size_t rsb_snapstore_count(const struct rsb_snapstore *store);
const struct rsb_snappoint *rsb_snapstore_at(const struct rsb_snapstore *store, size_t i);
/* Where number is; -ENOENT with a sentence. */
rsb_nodiscard int rsb_snapstore_find(
	const struct rsb_snapstore *store, uint64_t number, struct rsb_diag *diag);
/* Where the base of i is. */
size_t rsb_snapstore_base(const struct rsb_snapstore *store, size_t i);
/* There was an index that could not be read. */
bool rsb_snapstore_was_damaged(const struct rsb_snapstore *store);
/* Of all files. */
uint64_t rsb_snapstore_size(const struct rsb_snapstore *store);

/*
 * The files of i are as they were when they were taken: -EBADMSG with a sentence, also when they
 * are not there. The archive is read for it to its end.
 */
rsb_nodiscard int rsb_snapstore_verify(
	const struct rsb_snapstore *store, size_t i, struct rsb_diag *diag);
/* They are there, and as long as they were; nothing is read. */
bool rsb_snapstore_is_there(const struct rsb_snapstore *store, size_t i);
/* Also compares the digest. */
rsb_nodiscard int rsb_snapstore_tree(
	const struct rsb_snapstore *store, size_t i, struct rsb_tree *tree, struct rsb_diag *diag);
/* For reading; the descriptor is the caller's. */
rsb_nodiscard int rsb_snapstore_archive(const struct rsb_snapstore *store, size_t i);

/* A new file for an archive, for reading and writing; the caller's. */
rsb_nodiscard int rsb_snapstore_begin(struct rsb_snapstore *store);
/* Nothing comes of it: its room is free again. */
void rsb_snapstore_give_up(struct rsb_snapstore *store);
/*
 * Adds one behind the last, with what the file of rsb_snapstore_begin() holds by now. Number, sizes
 * and digests of point are filled.
 */
rsb_nodiscard int rsb_snapstore_add(struct rsb_snapstore *store, int archive_fd,
	const struct rsb_tree *tree, struct rsb_snappoint *point);
/* It has turned out that the last one is not fuzzy. */
rsb_nodiscard int rsb_snapstore_clear(struct rsb_snapstore *store);
/* The first n go; they are a chain, or more, as far as anything stays. */
rsb_nodiscard int rsb_snapstore_drop(struct rsb_snapstore *store, size_t n);

#endif
