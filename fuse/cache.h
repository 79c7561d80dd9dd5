/* SPDX-License-Identifier: MIT */
#ifndef RSB_CACHE_H
#define RSB_CACHE_H

/*
 * When the past may be told: one decision for names, attributes and pages, in the daemon and in
 * the kernel. The cache is on while nobody but this mount can change the workspace: the link is
 * live and no process of a command lives.
 *
 *			kernel names, attributes	pages kept at open	own tables
 *	on		RSB_CACHE_TTL_S			if they agree		answer
 *	a command lives	0				no			do not
 *	link not live	0				if they agree		answer what was true
 *
 * Each time that a command starts or the last one ends, and for every new sidecar, a new
 * generation begins: what was learnt in an earlier one counts no more, without a walk over the
 * tables. Pure state, under the lock of fuse/fs.h.
 */

#include <stdbool.h>

#include "util/macro.h"

#define RSB_CACHE_TTL_S 3600.0

struct rsb_cache {
	uint64_t generation; /* from 1 up */
	size_t n_foreign;    /* commands with living processes, archives under way */
	bool link_live;
};

void rsb_cache_init(struct rsb_cache *cache);
/* Somebody else begins, ends to be able to change things. */
void rsb_cache_foreign_begin(struct rsb_cache *cache);
void rsb_cache_foreign_end(struct rsb_cache *cache);
/* What was learnt so far is void. */
void rsb_cache_drop(struct rsb_cache *cache);
/* What was learnt in generation may be answered from our own tables. */
bool rsb_cache_valid(const struct rsb_cache *cache, uint64_t generation);
/* New knowledge may be kept under the present generation. */
bool rsb_cache_on(const struct rsb_cache *cache);
/* What the kernel may be told: seconds for names and attributes. */
double rsb_cache_ttl(const struct rsb_cache *cache);

#endif
