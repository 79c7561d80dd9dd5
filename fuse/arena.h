/* SPDX-License-Identifier: MIT */
#ifndef RSB_ARENA_H
#define RSB_ARENA_H

/*
 * Bytes of any number in the shared mapping, as chains of blocks of RSB_SHARED_BLOCK, at most
 * RSB_SHARED_BLOCKS_MAX of them. A chain counts up to its size, which is stored last; which blocks
 * are free is known only here, and found out anew after a crash from the chains that count.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/shared.h"
#include "util/buf.h"

struct rsb_arena {
	struct rsb_shared *shared;
	uint32_t first_free; /* index + 1; 0: none */
	uint32_t n_used;
	uint8_t *found; /* a bit for each block, while rsb_arena_found() is called */
};

/* All blocks that were ever used count as free until they are found in a chain. -ENOMEM. */
rsb_nodiscard int rsb_arena_init(struct rsb_arena *arena, struct rsb_shared *shared);
void rsb_arena_done(struct rsb_arena *arena);
/* After init, for every chain that counts; then the rest is free. A chain that is none is cut. */
void rsb_arena_found(struct rsb_arena *arena, struct rsb_shared_chain *chain);
void rsb_arena_all_found(struct rsb_arena *arena);

/* -ENOBUFS: no block is free; then nothing has changed. */
rsb_nodiscard int rsb_arena_append(
	struct rsb_arena *arena, struct rsb_shared_chain *chain, struct rsb_bytes data);
/* Appends what is in the chain. */
rsb_nodiscard int rsb_arena_read(
	const struct rsb_arena *arena, const struct rsb_shared_chain *chain, struct rsb_buf *out);
/* Empties it. */
void rsb_arena_drop(struct rsb_arena *arena, struct rsb_shared_chain *chain);

#endif
