/* SPDX-License-Identifier: MIT */
#include "fuse/cache.h"

void
rsb_cache_init(struct rsb_cache *cache)
{
	*cache = (struct rsb_cache){ .generation = 1 };
}

void
rsb_cache_foreign_begin(struct rsb_cache *cache)
{
	if (cache->n_foreign++ == 0)
		cache->generation++;
}

void
rsb_cache_foreign_end(struct rsb_cache *cache)
{
	if (cache->n_foreign && --cache->n_foreign == 0)
		cache->generation++;
}

void
rsb_cache_drop(struct rsb_cache *cache)
{
	cache->generation++;
}

bool
rsb_cache_valid(const struct rsb_cache *cache, uint64_t generation)
{
	return cache->n_foreign == 0 && generation == cache->generation;
}

bool
rsb_cache_on(const struct rsb_cache *cache)
{
	return cache->n_foreign == 0;
}

double
rsb_cache_ttl(const struct rsb_cache *cache)
{
	return cache->n_foreign == 0 && cache->link_live ? RSB_CACHE_TTL_S : 0;
}
