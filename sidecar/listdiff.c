/* SPDX-License-Identifier: MIT */
#include "sidecar/listdiff.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/codec.h"
#include "util/cleanup.h"
#include "util/str.h"
#include "util/walk.h"

#define HEAD_SIZE 4u
#define RECORD_MAX ((size_t)16 << 10)
#define BLOCK_SIZE ((size_t)64 << 10)
#define DEPTH_MAX 2048u /* components of a path */

/* One of the lists, and the leaf at which we are. */
struct side {
	int fd;
	off_t at; /* behind what is in block */
	struct rsb_buf block;
	bool end;
	struct rsb_bytes leaf; /* borrowed from block */
	char path[RSB_PATH_MAX + 1];
	bool is_dir;
	bool is_young;
};

/* A directory on the way to where we are. */
struct step {
	char *path;
	struct rsb_bytes leaf; /* its data is ours */
	bool emitted;
};

struct run {
	const struct rsb_listdiff *diff;
	struct side old;
	struct side now;
	struct step steps[DEPTH_MAX];
	size_t depth;
};

static void
pop(struct run *run)
{
	struct step *step = &run->steps[--run->depth];

	free(step->path);
	free((void *)(uintptr_t)step->leaf.data);
}

static void
free_run(struct run **runp)
{
	struct run *run = *runp;

	if (!run)
		return;
	while (run->depth)
		pop(run);
	rsb_buf_done(&run->old.block);
	rsb_buf_done(&run->now.block);
	free(run);
}

/* ---- a list ---- */

/* At least size bytes are there, or -EBADMSG; 1: the list ends before the first. */
static int
fill(struct side *side, size_t size)
{
	while (rsb_buf_len(&side->block) < size) {
		uint8_t *tail;
		int r = rsb_buf_reserve(&side->block, BLOCK_SIZE, &tail);
		ssize_t n = r < 0 ? r : pread(side->fd, tail, BLOCK_SIZE, side->at);

		if (r < 0 || (n < 0 && errno != EINTR))
			return r < 0 ? r : -errno;
		if (n == 0)
			return rsb_buf_len(&side->block) ? -EBADMSG : 1;
		if (n > 0) {
			rsb_buf_commit(&side->block, (size_t)n);
			side->at += n;
		}
	}
	return 0;
}

static int
next(struct side *side)
{
	struct rsb_leaf leaf;
	const uint8_t *head;
	size_t size;
	int r;

	if (side->leaf.data)
		rsb_buf_consume(&side->block, HEAD_SIZE + side->leaf.size);
	side->leaf = (struct rsb_bytes){ 0 };
	r = fill(side, HEAD_SIZE);
	if (r) {
		side->end = r > 0;
		return rsb_min(r, 0);
	}
	head = rsb_buf_head(&side->block);
	size = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
	r = size > RECORD_MAX ? -EBADMSG : fill(side, HEAD_SIZE + size);
	if (r)
		return -EBADMSG;
	side->leaf.data = rsb_buf_head(&side->block) + HEAD_SIZE;
	side->leaf.size = size;
	if (rsb_codec_decode(&rsb_desc_rsb_leaf, side->leaf, &leaf) < 0 || !leaf.path.size ||
		leaf.path.size > RSB_PATH_MAX)
		return -EBADMSG;
	memcpy(side->path, leaf.path.data, leaf.path.size);
	side->path[leaf.path.size] = '\0';
	side->is_dir = S_ISDIR(leaf.mode);
	side->is_young = !leaf.ctime.sec && !leaf.ctime.nsec;
	return 0;
}

/* ---- the way to a name ---- */

static bool
is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

static void
leave(struct run *run, const char *path)
{
	while (run->depth && !is_below(path, run->steps[run->depth - 1].path))
		pop(run);
}

static int
enter(struct run *run, bool emitted)
{
	struct step *step = &run->steps[run->depth];
	uint8_t *copy;

	if (run->depth == DEPTH_MAX)
		return -ENAMETOOLONG;
	copy = malloc(run->now.leaf.size);
	step->path = strdup(run->now.path);
	if (!copy || !step->path) {
		free(copy);
		free(step->path);
		return -ENOMEM;
	}
	memcpy(copy, run->now.leaf.data, run->now.leaf.size);
	step->leaf = (struct rsb_bytes){ .data = copy, .size = run->now.leaf.size };
	step->emitted = emitted;
	run->depth++;
	return 0;
}

static int
emit(struct run *run, struct rsb_bytes leaf)
{
	int r = 0;

	for (size_t i = 0; i < run->depth && r == 0; i++)
		if (!run->steps[i].emitted) {
			r = run->diff->emit(run->diff->arg, run->steps[i].leaf);
			run->steps[i].emitted = true;
		}
	return r ? r : run->diff->emit(run->diff->arg, leaf);
}

/* ---- both ---- */

static int
take_old(struct run *run)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { .max = RECORD_MAX };
	const struct rsb_leaf gone = { .path = rsb_bytes_str(run->old.path) };
	int r;

	leave(run, run->old.path);
	r = rsb_codec_encode(&rsb_desc_rsb_leaf, &gone, run->diff->version, &out);
	if (r >= 0)
		r = emit(run, rsb_buf_view(&out));
	return r ? r : next(&run->old);
}

static int
take_new(struct run *run, bool both)
{
	const struct rsb_bytes *a = &run->old.leaf;
	const struct rsb_bytes *b = &run->now.leaf;
	const bool same = both && !run->now.is_young && a->size == b->size &&
			  memcmp(a->data, b->data, a->size) == 0;
	int r = 0;

	leave(run, run->now.path);
	if (!same)
		r = emit(run, *b);
	if (r == 0 && run->now.is_dir)
		r = enter(run, !same);
	if (r == 0 && both)
		r = next(&run->old);
	return r ? r : next(&run->now);
}

int
rsb_listdiff(const struct rsb_listdiff *diff)
{
	RSB_CLEANUP(free_run) struct run *run = rsb_new(struct run);
	int r;

	if (!run)
		return -ENOMEM;
	run->diff = diff;
	run->old.fd = diff->old_fd;
	run->now.fd = diff->new_fd;
	rsb_buf_init(&run->old.block, 2 * BLOCK_SIZE + RECORD_MAX);
	rsb_buf_init(&run->now.block, 2 * BLOCK_SIZE + RECORD_MAX);
	r = next(&run->old);
	if (r == 0)
		r = next(&run->now);
	while (r == 0 && !(run->old.end && run->now.end)) {
		int order = run->old.end   ? 1
			    : run->now.end ? -1
					   : rsb_walk_compare(run->old.path, run->now.path);

		r = order < 0 ? take_old(run) : take_new(run, order == 0);
	}
	return r;
}
