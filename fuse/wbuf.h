/* SPDX-License-Identifier: MIT */
#ifndef RSB_WBUF_H
#define RSB_WBUF_H

/*
 * Written bytes of one open file that were not sent yet: extents that neither overlap nor touch,
 * later bytes over earlier ones. Pure memory. A buffer that appends has one extent without a
 * place, holds at most one message, and takes a write whole or not at all, so that what one
 * write(2) appended stays in one piece.
 */

#include <stdbool.h>

#include "proto/limits.h"
#include "util/buf.h"

#define RSB_WBUF_MAX ((size_t)1 << 20)
#define RSB_WBUF_EXTENTS_MAX 64u

struct rsb_wbuf_extent {
	uint64_t offset;
	struct rsb_buf data;
};

struct rsb_wbuf {
	struct rsb_wbuf_extent *extents; /* in order of offset; NULL until the first write */
	size_t n_extent;
	size_t size; /* of all */
	bool append;
};

void rsb_wbuf_init(struct rsb_wbuf *wbuf, bool append);
void rsb_wbuf_done(struct rsb_wbuf *wbuf);

/*
 * Takes as many bytes as fit and returns their number; 0: send first. Of an append
 * the offset is only kept. -ENOMEM.
 */
rsb_nodiscard int rsb_wbuf_put(struct rsb_wbuf *wbuf, uint64_t offset, struct rsb_bytes data);
/* Nothing more can be taken without sending. */
bool rsb_wbuf_full(const struct rsb_wbuf *wbuf);
/* The next piece to send, at most RSB_IO_MAX: 1; 0: empty. The view lives until rsb_wbuf_sent(). */
int rsb_wbuf_next(const struct rsb_wbuf *wbuf, uint64_t *ret_offset, struct rsb_bytes *ret_data);
/* That piece is gone. */
void rsb_wbuf_sent(struct rsb_wbuf *wbuf, size_t size);

#endif
