/* SPDX-License-Identifier: MIT */
#include "fuse/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRIM_BLOCKS 16384u /* so many may stay in memory unused */

static uint32_t
blocks_of(uint64_t size)
{
	return (uint32_t)((size + RSB_SHARED_BLOCK - 1) / RSB_SHARED_BLOCK);
}

int
rsb_arena_init(struct rsb_arena *arena, struct rsb_shared *shared)
{
	*arena = (struct rsb_arena){ .shared = shared };
	arena->found = calloc(RSB_SHARED_BLOCKS_MAX / 8, 1);
	return arena->found ? 0 : -ENOMEM;
}

void
rsb_arena_done(struct rsb_arena *arena)
{
	free(rsb_steal(&arena->found));
}

/* false: it is in another chain, or nowhere. */
static bool
find_block(struct rsb_arena *arena, uint32_t block)
{
	uint8_t bit = (uint8_t)(1u << block % 8);

	if (block >= arena->shared->head.n_block || arena->found[block / 8] & bit)
		return false;
	arena->found[block / 8] |= bit;
	return true;
}

void
rsb_arena_found(struct rsb_arena *arena, struct rsb_shared_chain *chain)
{
	uint32_t n = chain->size > (uint64_t)RSB_SHARED_BLOCKS_MAX * RSB_SHARED_BLOCK
			     ? 0
			     : blocks_of(chain->size);
	uint32_t block = chain->first;

	if (!n)
		chain->size = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!find_block(arena, block)) {
			chain->size = (uint64_t)i * RSB_SHARED_BLOCK;
			return;
		}
		chain->last = block;
		block = arena->shared->block_next[block];
	}
	arena->n_used += n;
}

static void
push_free(struct rsb_arena *arena, uint32_t block)
{
	arena->shared->block_next[block] = arena->first_free;
	arena->first_free = block + 1;
}

void
rsb_arena_all_found(struct rsb_arena *arena)
{
	for (uint32_t i = arena->shared->head.n_block; i-- > 0;) {
		if (!(arena->found[i / 8] & 1u << i % 8))
			push_free(arena, i);
	}
	free(rsb_steal(&arena->found));
}

static uint32_t
take_block(struct rsb_arena *arena)
{
	struct rsb_shared *shared = arena->shared;
	uint32_t block = arena->first_free;

	arena->n_used++;
	if (!block)
		return shared->head.n_block++;
	arena->first_free = shared->block_next[block - 1];
	return block - 1;
}

/* Nothing is used any more: the memory of a burst goes back. */
static void
trim(struct rsb_arena *arena)
{
	struct rsb_shared *shared = arena->shared;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)shared->blocks + page - 1) & ~(page - 1);
	uintptr_t to = (uintptr_t)shared->blocks[shared->head.n_block - 1] & ~(page - 1);

	if (arena->n_used || shared->head.n_block <= TRIM_BLOCKS)
		return;
	/* Without it the memory stays, which is only a pity. */
	if (madvise((void *)from, to - from, MADV_REMOVE) < 0)
		return;
	shared->head.n_block = 0;
	arena->first_free = 0;
}

static size_t
n_free(const struct rsb_arena *arena)
{
	return RSB_SHARED_BLOCKS_MAX - arena->n_used;
}

int
rsb_arena_append(struct rsb_arena *arena, struct rsb_shared_chain *chain, struct rsb_bytes data)
{
	struct rsb_shared *shared = arena->shared;
	uint64_t size = chain->size;

	if (blocks_of(size + data.size) - blocks_of(size) > n_free(arena))
		return -ENOBUFS;
	while (data.size) {
		size_t at = size % RSB_SHARED_BLOCK;
		size_t n = rsb_min(RSB_SHARED_BLOCK - at, data.size);

		if (at == 0) {
			uint32_t block = take_block(arena);

			if (size)
				shared->block_next[chain->last] = block;
			else
				chain->first = block;
			chain->last = block;
		}
		memcpy(shared->blocks[chain->last] + at, data.data, n);
		data.data += n;
		data.size -= n;
		size += n;
	}
	rsb_shared_publish(&chain->size, size);
	return 0;
}

int
rsb_arena_read(
	const struct rsb_arena *arena, const struct rsb_shared_chain *chain, struct rsb_buf *out)
{
	uint32_t block = chain->first;
	uint64_t left = chain->size;
	int r = 0;

	while (left && r >= 0) {
		size_t n = (size_t)rsb_min(left, (uint64_t)RSB_SHARED_BLOCK);

		r = rsb_buf_append(out, arena->shared->blocks[block], n);
		block = arena->shared->block_next[block];
		left -= n;
	}
	return r;
}

void
rsb_arena_drop(struct rsb_arena *arena, struct rsb_shared_chain *chain)
{
	uint32_t n = blocks_of(chain->size);
	uint32_t block = chain->first;

	rsb_shared_publish(&chain->size, 0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t next = arena->shared->block_next[block];

		push_free(arena, block);
		block = next;
	}
	arena->n_used -= n;
	if (n)
		trim(arena);
}
