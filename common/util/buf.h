/* SPDX-License-Identifier: MIT */
#ifndef RSB_BUF_H
#define RSB_BUF_H

/*
 * Growable bytes with a hard maximum. Depends on nothing but macro.h.
 *
 * Invariants: off <= size <= cap; size - off <= max; data is NULL iff cap is 0. The live
 * bytes are data[off..size). Appending may move data but never off, so an index into data
 * stays true. Consuming advances off, or moves the live bytes to the front when that pays:
 * views end there (AddressSanitizer is told). So the storage is at most twice the maximum
 * and a page. A failed call changes nothing.
 *
 * Life cycle: rsb_buf_init (no allocation), rsb_buf_done (contents; NULL and zeroed memory
 * are fine), rsb_buf_clear (empty, keeps storage).
 */

#include "util/cleanup.h"
#include "util/macro.h"

struct rsb_buf {
	uint8_t *data;
	size_t off;
	size_t size;
	size_t cap;
	size_t max; /* 0 is taken as RSB_BUF_MAX_DEFAULT */
};

#define RSB_BUF_MAX_DEFAULT ((size_t)64 << 20)

/* A view of bytes that somebody else owns. */
struct rsb_bytes {
	const uint8_t *data;
	size_t size;
};

void rsb_buf_init(struct rsb_buf *buf, size_t max);
void rsb_buf_done(struct rsb_buf *buf);
void rsb_buf_clear(struct rsb_buf *buf);

static inline size_t
rsb_buf_len(const struct rsb_buf *buf)
{
	return buf->size - buf->off;
}

static inline const uint8_t *
rsb_buf_head(const struct rsb_buf *buf)
{
	return buf->data ? buf->data + buf->off : NULL;
}

static inline struct rsb_bytes
rsb_buf_view(const struct rsb_buf *buf)
{
	return (struct rsb_bytes){ .data = rsb_buf_head(buf), .size = rsb_buf_len(buf) };
}

/* -EMSGSIZE over max, -ENOMEM; else room for n more bytes is at *ret_tail (not yet counted). */
rsb_nodiscard int rsb_buf_reserve(struct rsb_buf *buf, size_t n, uint8_t **ret_tail);
/* Counts n bytes that were written to the reserved tail. */
void rsb_buf_commit(struct rsb_buf *buf, size_t n);
/* Errors as reserve. data may be NULL when n is 0. */
rsb_nodiscard int rsb_buf_append(struct rsb_buf *buf, const void *data, size_t n);
/* Appends formatted text without its NUL. Errors as reserve. */
rsb_nodiscard int rsb_buf_printf(struct rsb_buf *buf, const char *fmt, ...) RSB_PRINTF(2, 3);
/* Drops n <= rsb_buf_len() bytes from the head. */
void rsb_buf_consume(struct rsb_buf *buf, size_t n);
/* The contents as a C string that the caller frees; buf is left empty. NULL: no memory. */
char *rsb_buf_steal_str(struct rsb_buf *buf);

static inline struct rsb_bytes
rsb_bytes_str(const char *s)
{
	return (struct rsb_bytes){ .data = (const uint8_t *)s, .size = __builtin_strlen(s) };
}

#endif
