/* SPDX-License-Identifier: MIT */
#ifndef RSB_MAP_H
#define RSB_MAP_H

/* u64 to pointer, open addressing, with a maximum number of entries. No locks. */

#include "util/macro.h"

struct rsb_map {
	struct rsb_map_slot *slots;
	size_t cap;
	size_t n;
	size_t n_dead;
	size_t max;
	uint64_t seed;
};

void rsb_map_init(struct rsb_map *map, size_t max);
/*
 * For keys that a peer chooses: with a secret random seed it cannot choose such that all collide.
 * Before the first put. The order of iteration depends on it.
 */
void rsb_map_seed(struct rsb_map *map, uint64_t seed);
void rsb_map_done(struct rsb_map *map);
/* Replaces; value is not NULL. -ENOSPC over max, -ENOMEM. */
rsb_nodiscard int rsb_map_put(struct rsb_map *map, uint64_t key, void *value);
/* NULL when absent. */
void *rsb_map_get(const struct rsb_map *map, uint64_t key);
/* The value that was there, or NULL. */
void *rsb_map_del(struct rsb_map *map, uint64_t key);
/*
 * Iteration: *cursor starts at 0; returns NULL at the end. ret_key may be NULL. The entry returned
 * last may be deleted; nothing may be put meanwhile.
 */
void *rsb_map_next(const struct rsb_map *map, size_t *cursor, uint64_t *ret_key);

#endif
