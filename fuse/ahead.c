/* SPDX-License-Identifier: MIT */
#include "fuse/ahead.h"

#include <errno.h>
#include <string.h>

#include "fuse/reply.h"
#include "fuse/send.h"

#define PIECE ((uint64_t)RSB_IO_MAX)
#define STRAY ((uint64_t)512 << 10) /* so far out of order the kernel's own readers get */

/* One read message and what it brought. */
struct piece {
	struct rsb_list link;
	struct rsb_ahead *ahead;
	uint64_t index; /* offset / PIECE */
	bool done;
	bool dropped; /* nobody waits for it: freed when it comes */
	int error;
	size_t size;
	uint8_t *data;
};

struct rsb_ahead {
	struct rsb_fs *fs;
	struct rsb_handle *handle; /* which owns us */
	struct rsb_list pieces;    /* in order of index */
	struct rsb_list readers;   /* of struct rsb_fop.wait */
	uint64_t expected;         /* where a reader in order goes on */
	uint64_t window;
	uint64_t since; /* seq when the first of the pieces was sent */
};

static void
piece_free(struct piece *piece)
{
	if (piece->done)
		piece->ahead->fs->ahead_size -= piece->size;
	rsb_list_remove(&piece->link);
	free(piece->data);
	free(piece);
}

/* Those before index; UINT64_MAX: all. */
static void
drop_before(struct rsb_ahead *ahead, uint64_t index)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	rsb_list_for_each_safe (pos, tmp, &ahead->pieces) {
		struct piece *piece = rsb_list_entry(pos, struct piece, link);

		if (piece->index >= index)
			break;
		if (piece->done) {
			piece_free(piece);
		} else {
			piece->dropped = true;
			rsb_list_remove(&piece->link);
		}
	}
}

void
rsb_ahead_free(struct rsb_ahead *ahead)
{
	if (!ahead)
		return;
	drop_before(ahead, UINT64_MAX);
	free(ahead);
}

/* ---- answering ---- */

/* The piece that has offset, NULL: none. */
static struct piece *
find(const struct rsb_ahead *ahead, uint64_t index)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &ahead->pieces) {
		struct piece *piece = rsb_list_entry(pos, struct piece, link);

		if (piece->index >= index)
			return piece->index == index ? piece : NULL;
	}
	return NULL;
}

/* Copies what is there from the start on: the size, or -EAGAIN when a piece is missing. */
static int
gather(const struct rsb_ahead *ahead, struct rsb_fop *fop)
{
	const struct piece *piece = find(ahead, fop->offset / PIECE);
	size_t got = 0;

	while (got < fop->size) {
		size_t at = (size_t)((fop->offset + got) % PIECE);
		size_t left;
		size_t n;

		if (!piece || piece->index != (fop->offset + got) / PIECE || !piece->done)
			return -EAGAIN;
		if (piece->error)
			return piece->error;
		left = at < piece->size ? piece->size - at : 0;
		n = rsb_min(fop->size - got, left);
		if (n)
			memcpy(fop->data + got, piece->data + at, n);
		got += n;
		/* Short is the end of the file. */
		if (piece->size < PIECE)
			break;
		piece = piece->link.next == &ahead->pieces
				? NULL
				: rsb_list_entry(piece->link.next, struct piece, link);
	}
	return (int)got;
}

/* The first piece that somebody who waits begins in. */
static uint64_t
first_needed(const struct rsb_ahead *ahead)
{
	uint64_t first = UINT64_MAX;
	struct rsb_list *pos;

	rsb_list_for_each (pos, &ahead->readers)
		first = rsb_min(first, rsb_list_entry(pos, struct rsb_fop, wait)->offset / PIECE);
	return first;
}

static void
try_answer(struct rsb_ahead *ahead, struct rsb_fop *fop)
{
	int r;

	r = gather(ahead, fop);
	if (r == -EAGAIN)
		return;
	if (r < 0 && fop->handle->broken)
		r = fop->handle->broken;
	/* While it still waits, so that its own first piece stays for the read that follows. */
	drop_before(ahead, first_needed(ahead));
	/* What failed once is asked for again. */
	if (r < 0)
		ahead->since = 0;
	if (r < 0)
		rsb_reply_err(fop, r);
	else
		rsb_reply_data(fop, (struct rsb_bytes){ .data = fop->data, .size = (size_t)r });
}

/* ---- fetching ---- */

static void
on_piece(void *arg, int r, const void *rep)
{
	struct piece *piece = arg;
	struct rsb_ahead *ahead = piece->ahead;
	struct rsb_handle *handle = ahead->handle;
	struct rsb_fs *fs = ahead->fs;
	const struct rsb_read_rep *got = rep;
	struct rsb_list *pos;
	struct rsb_list *tmp;

	if (piece->dropped) {
		free(piece);
		rsb_handle_unref(fs->handles, handle);
		return;
	}
	if (r >= 0 && got->data.size) {
		piece->data = malloc(got->data.size);
		if (piece->data) {
			memcpy(piece->data, got->data.data, got->data.size);
			piece->size = got->data.size;
			fs->ahead_size += piece->size;
		} else {
			r = -ENOMEM;
		}
	}
	piece->error = r < 0 ? r : 0;
	piece->done = true;
	rsb_list_for_each_safe (pos, tmp, &ahead->readers)
		try_answer(ahead, rsb_list_entry(pos, struct rsb_fop, wait));
	rsb_handle_unref(fs->handles, handle);
}

/* Sends for the piece, which goes before the first later one. */
static int
fetch(struct rsb_ahead *ahead, uint64_t index, struct rsb_list *before)
{
	const struct rsb_read_req req = {
		.fh = ahead->handle->fh,
		.offset = index * PIECE,
		.size = PIECE,
	};
	struct piece *piece = rsb_new(struct piece);
	int r;

	if (!piece)
		return -ENOMEM;
	piece->ahead = ahead;
	piece->index = index;
	r = rsb_send_call(ahead->fs->send, RSB_OP_read, &req, on_piece, piece, NULL);
	if (r < 0) {
		free(piece);
		return r;
	}
	(void)rsb_handle_ref(ahead->handle);
	rsb_list_append(before, &piece->link);
	return 0;
}

/* All pieces from first to last that are not there. -ENOMEM, -ENOBUFS. */
static int
fetch_missing(struct rsb_ahead *ahead, uint64_t first, uint64_t last)
{
	struct rsb_list *pos = ahead->pieces.next;
	int r = 0;

	for (uint64_t i = first; i <= last && r >= 0; i++) {
		while (pos != &ahead->pieces && rsb_list_entry(pos, struct piece, link)->index < i)
			pos = pos->next;
		if (pos == &ahead->pieces || rsb_list_entry(pos, struct piece, link)->index != i)
			r = fetch(ahead, i, pos);
	}
	return r;
}

/* ---- deciding ---- */

/* Every piece that fop needs is there or on its way. */
static bool
is_covered(const struct rsb_ahead *ahead, const struct rsb_fop *fop, uint64_t size)
{
	uint64_t last = (rsb_min(fop->offset + fop->size, size) - 1) / PIECE;

	for (uint64_t i = fop->offset / PIECE; i <= last; i++) {
		if (!find(ahead, i))
			return false;
	}
	return true;
}

static struct rsb_ahead *
ahead_of(struct rsb_fop *fop)
{
	struct rsb_handle *handle = fop->handle;
	struct rsb_ahead *ahead = handle->ahead;

	if (ahead)
		return ahead;
	ahead = rsb_new(struct rsb_ahead);
	if (!ahead)
		return NULL;
	ahead->fs = fop->fs;
	ahead->handle = handle;
	rsb_list_init(&ahead->pieces);
	rsb_list_init(&ahead->readers);
	handle->ahead = ahead;
	return ahead;
}

/* What was fetched is not what the file has now. */
static bool
is_old(const struct rsb_ahead *ahead)
{
	return !rsb_fs_keeps(ahead->fs, ahead->since) ||
	       ahead->handle->inode->changed > ahead->since;
}

/* The window grows with each read that goes on where the one before ended: then true. */
static bool
turn_window(struct rsb_ahead *ahead, uint64_t begin, uint64_t end)
{
	bool in_order = begin <= ahead->expected + STRAY && end + STRAY >= ahead->expected;

	ahead->expected = in_order ? rsb_max(ahead->expected, end) : end;
	ahead->window = in_order ? rsb_max(ahead->window * 2, RSB_AHEAD_WINDOW_MIN) : 0;
	ahead->window = rsb_min(ahead->window, RSB_AHEAD_WINDOW_MAX);
	return in_order;
}

bool
rsb_ahead_read(struct rsb_fop *fop)
{
	struct rsb_fs *fs = fop->fs;
	struct rsb_ahead *ahead = ahead_of(fop);
	uint64_t end = fop->offset + fop->size;
	uint64_t size = fop->inode->attr.size;
	bool in_order;
	uint64_t last;

	if (!ahead)
		return false;
	in_order = turn_window(ahead, fop->offset, end);
	if (!rsb_list_empty(&ahead->pieces) && (!in_order || is_old(ahead))) {
		/* Who waits for a piece still gets it; the rest is of no use. */
		if (!rsb_list_empty(&ahead->readers))
			return false;
		drop_before(ahead, UINT64_MAX);
	}
	if (!in_order || !rsb_fs_knows(fs, fop->inode) || fop->offset >= size ||
		(rsb_list_empty(&ahead->pieces) && end >= size))
		return false;
	last = rsb_min(end + ahead->window, size) - 1;
	if (fs->ahead_size >= RSB_AHEAD_MAX)
		last = rsb_min(end, size) - 1;
	if (rsb_list_empty(&ahead->pieces))
		ahead->since = fs->seq;
	if (fetch_missing(ahead, fop->offset / PIECE, last / PIECE) < 0 &&
		!is_covered(ahead, fop, size))
		return false;
	rsb_list_append(&ahead->readers, &fop->wait);
	try_answer(ahead, fop);
	return true;
}
