/* SPDX-License-Identifier: MIT */
#include "fuse/namestore.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define RUN_MAX ((RSB_NAME_MAX + RSB_SHARED_NAME_PIECE) / RSB_SHARED_NAME_PIECE)

/* A word: the first piece, and how many bytes without the NUL. */
#define WORD_SHIFT 16

struct rsb_namestore {
	struct rsb_shared *shared;
	uint32_t free[RUN_MAX + 1]; /* by length: the first run, which holds the next; 0: none */
};

static uint8_t *
bytes_of(const struct rsb_namestore *store, uint32_t i)
{
	return store->shared->names + (size_t)i * RSB_SHARED_NAME_PIECE;
}

static uint32_t
length(uint64_t word)
{
	uint32_t size = (uint32_t)(word & ((1u << WORD_SHIFT) - 1));

	return (uint32_t)(size + RSB_SHARED_NAME_PIECE) / RSB_SHARED_NAME_PIECE;
}

static void
give(struct rsb_namestore *store, uint32_t first, uint32_t n)
{
	memcpy(bytes_of(store, first), &store->free[n], sizeof(uint32_t));
	store->free[n] = first;
}

/* 0: there is none. */
static uint32_t
take(struct rsb_namestore *store, uint32_t n)
{
	struct rsb_shared_head *head = &store->shared->head;
	uint32_t first;

	for (uint32_t have = n; have <= RUN_MAX; have++) {
		first = store->free[have];
		if (!first)
			continue;
		memcpy(&store->free[have], bytes_of(store, first), sizeof(uint32_t));
		if (have > n)
			give(store, first + n, have - n);
		return first;
	}
	if (RSB_SHARED_NAME_PIECES_MAX - head->n_name_piece < n)
		return 0;
	first = head->n_name_piece;
	head->n_name_piece += n;
	return first;
}

/* ---- after a crash ---- */

static bool
makes_sense(const struct rsb_shared *shared, uint64_t word)
{
	uint64_t first = word >> WORD_SHIFT;

	return first && length(word) <= RUN_MAX &&
	       first + length(word) <= shared->head.n_name_piece;
}

static void
mark(const struct rsb_shared *shared, uint64_t word, uint8_t *used)
{
	uint64_t first = word >> WORD_SHIFT;

	if (!makes_sense(shared, word))
		return;
	for (uint64_t piece = first; piece < first + length(word); piece++)
		used[piece / CHAR_BIT] |= (uint8_t)(1u << piece % CHAR_BIT);
}

static int
find_free(struct rsb_namestore *store)
{
	struct rsb_shared *shared = store->shared;
	uint32_t n = shared->head.n_name_piece;
	rsb_autofree uint8_t *used = calloc(1, n / CHAR_BIT + 1);
	uint32_t run = 0;

	if (!used)
		return -ENOMEM;
	for (uint32_t i = 1; i <= shared->head.n_node; i++)
		mark(shared, shared->nodes[i].id ? shared->nodes[i].name : 0, used);
	for (uint32_t i = 1; i <= shared->head.n_alias; i++)
		mark(shared, shared->aliases[i].nodeid ? shared->aliases[i].name : 0, used);
	for (uint32_t piece = 1; piece < n; piece++) {
		run = used[piece / CHAR_BIT] & 1u << piece % CHAR_BIT ? 0 : run + 1;
		if (run && (run == RUN_MAX || piece + 1 == n ||
				   used[(piece + 1) / CHAR_BIT] & 1u << (piece + 1) % CHAR_BIT)) {
			give(store, piece + 1 - run, run);
			run = 0;
		}
	}
	return 0;
}

int
rsb_namestore_new(struct rsb_shared *shared, struct rsb_namestore **ret_store)
{
	struct rsb_namestore *store = rsb_new(struct rsb_namestore);
	int r;

	if (!store)
		return -ENOMEM;
	store->shared = shared;
	/* 0 is no piece. */
	if (!shared->head.n_name_piece)
		shared->head.n_name_piece = 1;
	r = find_free(store);
	if (r < 0) {
		free(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

void
rsb_namestore_free(struct rsb_namestore *store)
{
	free(store);
}

int
rsb_namestore_put(struct rsb_namestore *store, struct rsb_bytes name, uint64_t *ret_word)
{
	uint32_t first;

	if (name.size > RSB_NAME_MAX)
		return -ENAMETOOLONG;
	first = take(store, length(name.size));
	if (!first)
		return -ENOSPC;
	memcpy(bytes_of(store, first), name.data, name.size);
	bytes_of(store, first)[name.size] = 0;
	*ret_word = (uint64_t)first << WORD_SHIFT | name.size;
	return 0;
}

const char *
rsb_namestore_get(const struct rsb_namestore *store, uint64_t word)
{
	if (!makes_sense(store->shared, word))
		return NULL;
	return (const char *)bytes_of(store, (uint32_t)(word >> WORD_SHIFT));
}

void
rsb_namestore_drop(struct rsb_namestore *store, uint64_t word)
{
	if (makes_sense(store->shared, word))
		give(store, (uint32_t)(word >> WORD_SHIFT), length(word));
}
