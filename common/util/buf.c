/* SPDX-License-Identifier: MIT */
#include "util/buf.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RSB_BUF_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define RSB_BUF_ASAN 1
#endif

/*
 * Consumed bytes stay in place until the storage is compacted, so that a view kept too
 * long would mostly still look right. AddressSanitizer is told that they are gone.
 */
#if defined(RSB_BUF_ASAN)
#include <sanitizer/asan_interface.h>
#define hide(p, n) __asan_poison_memory_region((p), (n))
#define unhide(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define hide(p, n) ((void)(p), (void)(n))
#define unhide(p, n) ((void)(p), (void)(n))
#endif

#define CAP_MIN ((size_t)64)
/* Below this, consumed bytes at the front are not worth a memmove. */
#define COMPACT_MIN ((size_t)4096)

static size_t
limit(const struct rsb_buf *buf)
{
	return buf->max > 0 ? buf->max : RSB_BUF_MAX_DEFAULT;
}

void
rsb_buf_init(struct rsb_buf *buf, size_t max)
{
	*buf = (struct rsb_buf){ .max = max };
}

void
rsb_buf_done(struct rsb_buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	*buf = (struct rsb_buf){ .max = buf->max };
}

void
rsb_buf_clear(struct rsb_buf *buf)
{
	if (buf->data)
		unhide(buf->data, buf->off);
	buf->off = 0;
	buf->size = 0;
}

/*
 * Storage for at least cap bytes, and one more for a NUL that is not counted. Consumed bytes come
 * on top of the limit, or a full buffer that is emptied and filled in turn would grow each time.
 */
static int
grow(struct rsb_buf *buf, size_t cap)
{
	size_t most = buf->off ? limit(buf) * 2 : limit(buf);
	uint8_t *data;

	cap = rsb_max(cap, CAP_MIN);
	if (cap < buf->cap * 2)
		cap = rsb_max(cap, rsb_min(buf->cap * 2, most));
	if (buf->data)
		unhide(buf->data, buf->off);
	data = realloc(buf->data, cap + 1);
	if (data) {
		buf->data = data;
		buf->cap = cap;
	}
	if (buf->data)
		hide(buf->data, buf->off);
	return data ? 0 : -ENOMEM;
}

int
rsb_buf_reserve(struct rsb_buf *buf, size_t n, uint8_t **ret_tail)
{
	int r;

	if (n > limit(buf) - rsb_buf_len(buf))
		return -EMSGSIZE;
	if (!buf->data || n > buf->cap - buf->size) {
		if (n > SIZE_MAX / 2 || buf->size > SIZE_MAX / 2 - n)
			return -ENOMEM;
		r = grow(buf, buf->size + n);
		if (r < 0)
			return r;
	}
	*ret_tail = buf->data + buf->size;
	return 0;
}

void
rsb_buf_commit(struct rsb_buf *buf, size_t n)
{
	assert(n <= buf->cap - buf->size);
	buf->size += n;
}

int
rsb_buf_append(struct rsb_buf *buf, const void *data, size_t n)
{
	uint8_t *tail;
	int r;

	if (n == 0)
		return 0;
	r = rsb_buf_reserve(buf, n, &tail);
	if (r < 0)
		return r;
	memcpy(tail, data, n);
	rsb_buf_commit(buf, n);
	return 0;
}

int
rsb_buf_printf(struct rsb_buf *buf, const char *fmt, ...)
{
	uint8_t *tail;
	va_list ap;
	size_t size;
	int n, r;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -errno;
	size = (size_t)n;

	r = rsb_buf_reserve(buf, size, &tail);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf((char *)tail, size + 1, fmt, ap); /* measured above */
	va_end(ap);
	rsb_buf_commit(buf, size);
	return 0;
}

void
rsb_buf_consume(struct rsb_buf *buf, size_t n)
{
	/* Granules are of 8 bytes: of the last one only the front may have been hidden. */
	size_t hidden = buf->off & ~(size_t)7;
	size_t len = rsb_buf_len(buf);

	assert(n <= len);
	if (n == 0)
		return;
	len -= n;
	if (len == 0) {
		rsb_buf_clear(buf);
		return;
	}
	buf->off += n;
	if (buf->off >= COMPACT_MIN && buf->off >= len) {
		unhide(buf->data, buf->off);
		memmove(buf->data, buf->data + buf->off, len);
		buf->off = 0;
		buf->size = len;
		return;
	}
	hide(buf->data + hidden, buf->off - hidden);
}

char *
rsb_buf_steal_str(struct rsb_buf *buf)
{
	size_t len = rsb_buf_len(buf);
	char *s;

	if (!buf->data)
		return calloc(1, 1);
	unhide(buf->data, buf->off);
	s = (char *)buf->data;
	memmove(s, s + buf->off, len);
	s[len] = '\0';
	*buf = (struct rsb_buf){ .max = buf->max };
	return s;
}
