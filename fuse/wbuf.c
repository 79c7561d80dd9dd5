/* SPDX-License-Identifier: MIT */
#include "fuse/wbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
rsb_wbuf_init(struct rsb_wbuf *wbuf, bool append)
{
	*wbuf = (struct rsb_wbuf){ .append = append };
}

void
rsb_wbuf_done(struct rsb_wbuf *wbuf)
{
	for (size_t i = 0; i < wbuf->n_extent; i++)
		rsb_buf_done(&wbuf->extents[i].data);
	free(wbuf->extents);
	*wbuf = (struct rsb_wbuf){ .append = wbuf->append };
}

static uint64_t
end_of(const struct rsb_wbuf_extent *extent)
{
	return extent->offset + rsb_buf_len(&extent->data);
}

static void
remove_extent(struct rsb_wbuf *wbuf, size_t i)
{
	rsb_buf_done(&wbuf->extents[i].data);
	wbuf->n_extent--;
	memmove(&wbuf->extents[i], &wbuf->extents[i + 1],
		(wbuf->n_extent - i) * sizeof(wbuf->extents[0]));
}

/* A new empty extent at i. -EAGAIN: no place for one more. */
static int
insert_extent(struct rsb_wbuf *wbuf, size_t i, uint64_t offset)
{
	if (!wbuf->extents) {
		wbuf->extents = rsb_new_array(struct rsb_wbuf_extent, RSB_WBUF_EXTENTS_MAX);
		if (!wbuf->extents)
			return -ENOMEM;
	}
	if (wbuf->n_extent == RSB_WBUF_EXTENTS_MAX)
		return -EAGAIN;
	memmove(&wbuf->extents[i + 1], &wbuf->extents[i],
		(wbuf->n_extent - i) * sizeof(wbuf->extents[0]));
	wbuf->n_extent++;
	wbuf->extents[i].offset = offset;
	rsb_buf_init(&wbuf->extents[i].data, RSB_WBUF_MAX);
	return 0;
}

/* Writes data over the part of extent that it covers and appends the rest. */
static int
overlay(struct rsb_wbuf *wbuf, struct rsb_wbuf_extent *extent, uint64_t offset,
	struct rsb_bytes data)
{
	size_t have = rsb_buf_len(&extent->data);
	size_t at = (size_t)(offset - extent->offset);
	size_t over = rsb_min(have - at, data.size);
	int r;

	r = rsb_buf_append(&extent->data, data.data + over, data.size - over);
	if (r < 0)
		return r;
	memcpy(extent->data.data + extent->data.off + at, data.data, over);
	wbuf->size += data.size - over;
	return 0;
}

/* Extent i has grown: what it covers of later ones is old, what is beyond joins it. */
static int
absorb(struct rsb_wbuf *wbuf, size_t i)
{
	struct rsb_wbuf_extent *extent = &wbuf->extents[i];

	while (i + 1 < wbuf->n_extent && wbuf->extents[i + 1].offset <= end_of(extent)) {
		struct rsb_wbuf_extent *next = &wbuf->extents[i + 1];
		size_t covered = (size_t)rsb_min(
			end_of(extent) - next->offset, (uint64_t)rsb_buf_len(&next->data));
		int r;

		r = rsb_buf_append(&extent->data, rsb_buf_head(&next->data) + covered,
			rsb_buf_len(&next->data) - covered);
		if (r < 0)
			return r;
		wbuf->size -= covered;
		remove_extent(wbuf, i + 1);
	}
	return 0;
}

static int
put_append(struct rsb_wbuf *wbuf, uint64_t offset, struct rsb_bytes data)
{
	int r;

	/* Whole or not at all; only what is longer than a message is cut. */
	if (wbuf->size && wbuf->size + data.size > RSB_IO_MAX)
		return 0;
	data.size = rsb_min(data.size, (size_t)RSB_IO_MAX);
	if (!wbuf->n_extent) {
		r = insert_extent(wbuf, 0, offset);
		if (r < 0)
			return r;
	}
	r = rsb_buf_append(&wbuf->extents[0].data, data.data, data.size);
	if (r < 0)
		return r;
	wbuf->size += data.size;
	return (int)data.size;
}

int
rsb_wbuf_put(struct rsb_wbuf *wbuf, uint64_t offset, struct rsb_bytes data)
{
	size_t i = 0;
	int r;

	if (!data.size)
		return 0;
	if (wbuf->append)
		return put_append(wbuf, offset, data);
	if (wbuf->size >= RSB_WBUF_MAX)
		return 0;
	data.size = rsb_min(data.size, RSB_WBUF_MAX - wbuf->size);
	while (i < wbuf->n_extent && end_of(&wbuf->extents[i]) < offset)
		i++;
	if (i == wbuf->n_extent || wbuf->extents[i].offset > offset) {
		r = insert_extent(wbuf, i, offset);
		if (r == -EAGAIN)
			return 0;
		if (r < 0)
			return r;
	}
	r = overlay(wbuf, &wbuf->extents[i], offset, data);
	if (r < 0) {
		if (!rsb_buf_len(&wbuf->extents[i].data))
			remove_extent(wbuf, i);
		return r;
	}
	r = absorb(wbuf, i);
	return r < 0 ? r : (int)data.size;
}

bool
rsb_wbuf_full(const struct rsb_wbuf *wbuf)
{
	return wbuf->append ? wbuf->size >= RSB_IO_MAX : wbuf->size >= RSB_WBUF_MAX;
}

int
rsb_wbuf_next(const struct rsb_wbuf *wbuf, uint64_t *ret_offset, struct rsb_bytes *ret_data)
{
	if (!wbuf->n_extent)
		return 0;
	*ret_offset = wbuf->extents[0].offset;
	*ret_data = rsb_buf_view(&wbuf->extents[0].data);
	ret_data->size = rsb_min(ret_data->size, (size_t)RSB_IO_MAX);
	return 1;
}

void
rsb_wbuf_sent(struct rsb_wbuf *wbuf, size_t size)
{
	struct rsb_wbuf_extent *extent = &wbuf->extents[0];

	rsb_buf_consume(&extent->data, size);
	extent->offset += size;
	wbuf->size -= size;
	if (!rsb_buf_len(&extent->data))
		remove_extent(wbuf, 0);
}
