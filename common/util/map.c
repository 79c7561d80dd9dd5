/* SPDX-License-Identifier: MIT */
#include "util/map.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "util/mix.h"

#define CAP_MIN ((size_t)16)

struct rsb_map_slot {
	uint64_t key;
	void *value; /* NULL: never used; DEAD: deleted, a probe goes on */
};

/* A slot array is no value of the caller's, so its own address can mark the dead. */
#define DEAD(map) ((void *)(map)->slots)

static size_t
home(const struct rsb_map *map, uint64_t key)
{
	/* Keys are counters and inode numbers. */
	return (size_t)rsb_mix_u64(key ^ map->seed) & (map->cap - 1);
}

void
rsb_map_init(struct rsb_map *map, size_t max)
{
	*map = (struct rsb_map){ .max = max };
}

void
rsb_map_seed(struct rsb_map *map, uint64_t seed)
{
	assert(map->cap == 0);
	map->seed = seed;
}

void
rsb_map_done(struct rsb_map *map)
{
	free(map->slots);
	*map = (struct rsb_map){ .max = map->max, .seed = map->seed };
}

static struct rsb_map_slot *
find(const struct rsb_map *map, uint64_t key)
{
	size_t i;

	if (map->cap == 0)
		return NULL;
	/* Ends, since a quarter of the slots was never used. */
	for (i = home(map, key); map->slots[i].value; i = (i + 1) & (map->cap - 1))
		if (map->slots[i].key == key && map->slots[i].value != DEAD(map))
			return &map->slots[i];
	return NULL;
}

/* Puts a key that is not there; there is a free slot. */
static void
insert(struct rsb_map *map, uint64_t key, void *value)
{
	size_t i = home(map, key);

	while (map->slots[i].value && map->slots[i].value != DEAD(map))
		i = (i + 1) & (map->cap - 1);
	if (map->slots[i].value)
		map->n_dead--;
	map->slots[i] = (struct rsb_map_slot){ .key = key, .value = value };
	map->n++;
}

/* Room for one more entry, without the dead ones. */
static int
rehash(struct rsb_map *map)
{
	struct rsb_map old = *map;
	size_t cap = CAP_MIN;
	size_t i;

	while (cap < (old.n + 1) * 2)
		cap *= 2;
	map->slots = calloc(cap, sizeof(*map->slots));
	if (!map->slots) {
		*map = old;
		return -ENOMEM;
	}
	map->cap = cap;
	map->n = 0;
	map->n_dead = 0;
	for (i = 0; i < old.cap; i++)
		if (old.slots[i].value && old.slots[i].value != DEAD(&old))
			insert(map, old.slots[i].key, old.slots[i].value);
	free(old.slots);
	return 0;
}

int
rsb_map_put(struct rsb_map *map, uint64_t key, void *value)
{
	struct rsb_map_slot *slot = find(map, key);
	int r;

	assert(value);
	if (slot) {
		slot->value = value;
		return 0;
	}
	if (map->n >= map->max)
		return -ENOSPC;
	if (map->n + map->n_dead + 1 > map->cap / 4 * 3) {
		r = rehash(map);
		if (r < 0)
			return r;
	}
	insert(map, key, value);
	return 0;
}

void *
rsb_map_get(const struct rsb_map *map, uint64_t key)
{
	const struct rsb_map_slot *slot = find(map, key);

	return slot ? slot->value : NULL;
}

void *
rsb_map_del(struct rsb_map *map, uint64_t key)
{
	struct rsb_map_slot *slot = find(map, key);
	void *value;

	if (!slot)
		return NULL;
	value = slot->value;
	slot->value = DEAD(map);
	map->n--;
	map->n_dead++;
	return value;
}

void *
rsb_map_next(const struct rsb_map *map, size_t *cursor, uint64_t *ret_key)
{
	const struct rsb_map_slot *slot;

	while (*cursor < map->cap) {
		slot = &map->slots[(*cursor)++];
		if (slot->value && slot->value != DEAD(map)) {
			if (ret_key)
				*ret_key = slot->key;
			return slot->value;
		}
	}
	return NULL;
}
