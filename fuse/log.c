/* SPDX-License-Identifier: MIT */
#include "fuse/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/guard.h"

/* Before the bytes of each piece. */
struct piece_head {
	uint64_t offset;
	uint64_t size;
};

/* Before the name of each entry of a listing. */
struct entry_head {
	uint64_t ino;
	uint8_t type;
	uint8_t size;
};

#define N_DOT 2u /* entries that every listing begins with */
#define LOG_MAX (RSB_WBUF_MAX * 4)
#define SNAP_MAX ((size_t)RSB_SHARED_BLOCKS_MAX * RSB_SHARED_BLOCK)

static struct rsb_shared_log *
log_of(const struct rsb_handle *handle)
{
	return &handle->shared->logs[handle->shared->log & 1];
}

/* One piece, in one append: it counts as a whole or not at all. */
static int
add(struct rsb_arena *arena, struct rsb_shared_chain *chain, uint64_t offset, struct rsb_bytes data)
{
	const struct piece_head head = { .offset = offset, .size = data.size };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = LOG_MAX };
	int r;

	r = rsb_buf_append(&buf, &head, sizeof(head));
	if (r >= 0)
		r = rsb_buf_append(&buf, data.data, data.size);
	return r < 0 ? r : rsb_arena_append(arena, chain, rsb_buf_view(&buf));
}

int
rsb_log_put(
	struct rsb_arena *arena, struct rsb_handle *handle, uint64_t offset, struct rsb_bytes data)
{
	struct rsb_shared_log *log = log_of(handle);
	int r;

	if (!log->chain.size)
		log->base = handle->put;
	r = add(arena, &log->chain, offset, data);
	if (r < 0)
		return r;
	handle->put += data.size;
	/* Many small pieces over each other would grow without end. */
	if (log->chain.size > RSB_WBUF_MAX * 2)
		rsb_log_cut(arena, handle);
	return 0;
}

/* Copies what is left of wbuf. */
static int
copy_rest(struct rsb_arena *arena, const struct rsb_wbuf *wbuf, struct rsb_shared_log *log)
{
	int r = 0;

	for (size_t i = 0; i < wbuf->n_extent && r >= 0; i++)
		r = add(arena, &log->chain, wbuf->extents[i].offset,
			rsb_buf_view(&wbuf->extents[i].data));
	return r;
}

void
rsb_log_cut(struct rsb_arena *arena, struct rsb_handle *handle)
{
	struct rsb_shared_handle *shared = handle->shared;
	struct rsb_shared_log *old = log_of(handle);
	struct rsb_shared_log *fresh = &shared->logs[1 - (shared->log & 1)];

	fresh->base = handle->put - handle->wbuf.size;
	/* Without room the old one stays, which has more than is left: it would be sent again. */
	if (copy_rest(arena, &handle->wbuf, fresh) < 0) {
		rsb_arena_drop(arena, &fresh->chain);
		return;
	}
	rsb_shared_publish(&shared->log, 1 - (shared->log & 1));
	rsb_arena_drop(arena, &old->chain);
}

/* ---- after a crash ---- */

/* Puts the pieces into wbuf, less the first skip bytes, and counts all. */
static int
replay(struct rsb_handle *handle, struct rsb_bytes log, uint64_t skip)
{
	struct piece_head head;
	int r = 0;

	while (r >= 0 && log.size >= sizeof(head)) {
		struct rsb_bytes data;
		uint64_t n;

		memcpy(&head, log.data, sizeof(head));
		data = (struct rsb_bytes){ log.data + sizeof(head), log.size - sizeof(head) };
		if (head.size > data.size)
			return -EBADMSG;
		data.size = head.size;
		log.data += sizeof(head) + head.size;
		log.size -= sizeof(head) + head.size;
		handle->put += head.size;
		n = rsb_min(skip, head.size);
		skip -= n;
		data.data += n;
		data.size -= n;
		if (data.size)
			r = rsb_wbuf_put(&handle->wbuf, head.offset + n, data);
		if (r >= 0 && (size_t)r < data.size)
			r = -ENOBUFS;
	}
	return r < 0 ? r : 0;
}

static int
read_log(struct rsb_arena *arena, struct rsb_handle *handle, uint64_t skip)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = LOG_MAX };
	const struct rsb_shared_log *log = log_of(handle);
	int r;

	handle->put = log->base;
	r = rsb_arena_read(arena, &log->chain, &buf);
	return r < 0 ? r : replay(handle, rsb_buf_view(&buf), skip);
}

static int
read_snap(struct rsb_handle *handle, struct rsb_bytes log)
{
	struct entry_head head;
	int r = 0;

	while (r >= 0 && log.size >= sizeof(head)) {
		struct rsb_dirsnap_entry entry;

		memcpy(&head, log.data, sizeof(head));
		if (log.size - sizeof(head) < head.size)
			return -EBADMSG;
		entry = (struct rsb_dirsnap_entry){
			.name = { .data = log.data + sizeof(head), .size = head.size },
			.ino = head.ino,
			.type = head.type,
		};
		r = rsb_dirsnap_add(handle->snap, &entry);
		log.data += sizeof(head) + head.size;
		log.size -= sizeof(head) + head.size;
	}
	return r;
}

/*
 * A listing that was read from goes on: one that is not whole is loaded again behind what is known,
 * by who reads on. When something was told that is not known, what else would be told twice?
 */
static int
restore_snap(struct rsb_arena *arena, struct rsb_handle *handle, struct rsb_dirsnaps *all)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = SNAP_MAX };
	struct rsb_shared_handle *shared = handle->shared;
	uint64_t ino = handle->inode->attr.ino;
	bool whole = shared->snap_whole && shared->snap_n == shared->snap_whole;
	int r;

	if (!shared->snap_used) {
		rsb_log_drop_snap(arena, handle);
		return 0;
	}
	r = rsb_dirsnap_new(all, ino, ino, &handle->snap);
	if (r >= 0)
		r = rsb_arena_read(arena, &shared->snap, &buf);
	if (r >= 0)
		r = read_snap(handle, rsb_buf_view(&buf));
	if (r < 0)
		return r;
	handle->snap_used = true;
	shared->snap_n = rsb_dirsnap_count(handle->snap) - N_DOT;
	if (!whole && shared->snap_used == RSB_SHARED_SNAP_KEPT)
		return rsb_dirsnap_again(handle->snap);
	rsb_dirsnap_finish(handle->snap, whole ? 0 : -EIO);
	return 0;
}

/* The same bytes as before, or none. */
static int
restore_view(struct rsb_arena *arena, struct rsb_handle *handle)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = SNAP_MAX };
	uint32_t viewed = handle->shared->viewed;
	struct rsb_guard_view *view;
	struct rsb_bytes bytes;
	int r;

	if (!(viewed & RSB_SHARED_VIEW_KEPT)) {
		handle->broken = -ESTALE;
		return 0;
	}
	r = rsb_arena_read(arena, &handle->shared->snap, &buf);
	if (r < 0)
		return r;
	bytes = rsb_buf_view(&buf);
	view = calloc(1, sizeof(*view) + bytes.size);
	if (!view)
		return -ENOMEM;
	view->n_ref = 1;
	view->changed = viewed & RSB_SHARED_VIEW_CHANGED;
	view->no_exec = viewed & RSB_SHARED_VIEW_NO_EXEC;
	view->size = bytes.size;
	if (bytes.size)
		memcpy(view->data, bytes.data, bytes.size);
	handle->view = view;
	return 0;
}

int
rsb_log_restore(struct rsb_arena *arena, struct rsb_handle *handle, struct rsb_dirsnaps *listings)
{
	int r;

	r = read_log(arena, handle, 0);
	if (r >= 0)
		r = handle->shared->viewed ? restore_view(arena, handle)
					   : restore_snap(arena, handle, listings);
	/* Who reads on is given nothing that is another. */
	if (r < 0 && (handle->shared->viewed || handle->shared->snap_used))
		handle->broken = -EIO;
	return r;
}

int
rsb_log_covered(struct rsb_arena *arena, struct rsb_handle *handle, uint64_t mark)
{
	const struct rsb_shared_log *log = log_of(handle);
	int r = 0;

	if (mark > log->base && log->chain.size) {
		rsb_wbuf_done(&handle->wbuf);
		r = read_log(arena, handle, mark - log->base);
	}
	handle->put = rsb_max(handle->put, mark);
	/* When that call is answered nothing would say any more what it has. */
	if (r >= 0)
		rsb_log_cut(arena, handle);
	return r;
}

/* ---- listings ---- */

/* The entries from from on, as bytes. */
static int
pack_snap(const struct rsb_dirsnap *snap, uint64_t from, struct rsb_buf *out)
{
	struct rsb_dirsnap_entry entry;
	int r = 0;

	for (uint64_t i = from; r >= 0 && rsb_dirsnap_get(snap, i, &entry); i++) {
		const struct entry_head head = {
			.ino = entry.ino,
			.type = (uint8_t)entry.type,
			.size = (uint8_t)entry.name.size,
		};

		r = rsb_buf_append(out, &head, sizeof(head));
		if (r >= 0)
			r = rsb_buf_append(out, entry.name.data, entry.name.size);
	}
	return r;
}

void
rsb_log_snap(struct rsb_arena *arena, struct rsb_handle *handle)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf buf = { .max = SNAP_MAX };
	struct rsb_shared_handle *shared = handle->shared;
	uint64_t n = rsb_dirsnap_count(handle->snap);
	uint64_t used = RSB_SHARED_SNAP_CUT;

	/*
	 * Whoever calls has not told these names yet: killed in here, what was there before is all
	 * that anybody knows.
	 */
	if (pack_snap(handle->snap, shared->snap_n + N_DOT, &buf) >= 0 &&
		rsb_arena_append(arena, &shared->snap, rsb_buf_view(&buf)) >= 0) {
		shared->snap_n = n - N_DOT;
		used = RSB_SHARED_SNAP_KEPT;
	}
	rsb_shared_publish(&shared->snap_used, used);
	if (rsb_dirsnap_state(handle->snap) == 1)
		rsb_shared_publish(&shared->snap_whole, n - N_DOT);
}

/* What waits to be sent needs the rest. */
static bool
has_room(const struct rsb_arena *arena, size_t size)
{
	return arena->n_used + size / RSB_SHARED_BLOCK < RSB_SHARED_BLOCKS_MAX / 2;
}

void
rsb_log_set_view(struct rsb_arena *arena, struct rsb_handle *handle, struct rsb_guard_view *view)
{
	struct rsb_shared_handle *shared = handle->shared;
	uint32_t viewed = RSB_SHARED_VIEWED;

	rsb_guard_view_unref(handle->view);
	handle->view = view;
	rsb_shared_publish(&shared->viewed, view ? viewed : 0);
	rsb_arena_drop(arena, &shared->snap);
	if (!view || !has_room(arena, view->size) ||
		rsb_arena_append(arena, &shared->snap,
			(struct rsb_bytes){ .data = view->data, .size = view->size }) < 0)
		return;
	viewed |= RSB_SHARED_VIEW_KEPT;
	viewed |= view->changed ? RSB_SHARED_VIEW_CHANGED : 0;
	viewed |= view->no_exec ? RSB_SHARED_VIEW_NO_EXEC : 0;
	rsb_shared_publish(&shared->viewed, viewed);
}

void
rsb_log_drop_snap(struct rsb_arena *arena, struct rsb_handle *handle)
{
	handle->shared->snap_used = 0;
	handle->shared->snap_whole = 0;
	handle->shared->snap_n = 0;
	rsb_arena_drop(arena, &handle->shared->snap);
}
