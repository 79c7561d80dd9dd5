/* SPDX-License-Identifier: MIT */
#ifndef RSB_SNAPINDEX_H
#define RSB_SNAPINDEX_H

/*
 * The index of keeper/snapstore.h as text: one JSON object on a line, and a line with its SHA-256.
 * No locks.
 */

#include "keeper/snapstore.h"

#define RSB_SNAPINDEX_MAX ((size_t)1 << 20) /* bytes; RSB_SNAPSTORE_POINTS_MAX need half of it */

struct rsb_snapindex {
	struct rsb_snappoint *points; /* the oldest first */
	size_t n;
	uint64_t next; /* number that was not given yet */
};

void rsb_snapindex_done(struct rsb_snapindex *index); /* zeroed memory is fine */
/* Copies it behind the last. -ENOSPC over RSB_SNAPSTORE_POINTS_MAX, -ENOMEM. */
rsb_nodiscard int rsb_snapindex_add(struct rsb_snapindex *index, const struct rsb_snappoint *point);
void rsb_snapindex_drop(struct rsb_snapindex *index, size_t n); /* the first n */

/* Into an empty one. -EBADMSG: not what was written; it stays empty then. */
rsb_nodiscard int rsb_snapindex_read(struct rsb_bytes text, struct rsb_snapindex *index);
rsb_nodiscard int rsb_snapindex_write(const struct rsb_snapindex *index, struct rsb_buf *out);

#endif
