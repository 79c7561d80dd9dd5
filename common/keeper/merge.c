/* SPDX-License-Identifier: MIT */
#include "keeper/merge.h"

#include <string.h>
#include <sys/stat.h>

#include "util/walk.h"

enum rsb_merge_act
rsb_merge_decide(enum rsb_merge_did here, enum rsb_merge_did there)
{
	static const enum rsb_merge_act acts[RSB_MERGE_DID_N][RSB_MERGE_DID_N] = {
		[RSB_MERGE_SAME] = { [RSB_MERGE_CHANGED] = RSB_MERGE_TAKE,
			[RSB_MERGE_GONE] = RSB_MERGE_DROP },
		[RSB_MERGE_CHANGED] = { [RSB_MERGE_SAME] = RSB_MERGE_GIVE,
			[RSB_MERGE_CHANGED] = RSB_MERGE_CONFLICT,
			[RSB_MERGE_GONE] = RSB_MERGE_CONFLICT },
		[RSB_MERGE_GONE] = { [RSB_MERGE_SAME] = RSB_MERGE_REMOVE,
			[RSB_MERGE_CHANGED] = RSB_MERGE_CONFLICT },
	};

	return acts[here][there];
}

enum rsb_merge_did
rsb_merge_did(const struct rsb_tree_leaf *base, const struct rsb_tree_leaf *leaf,
	enum rsb_merge_side side)
{
	const bool was = base && base->mode;

	if (!leaf)
		return was ? RSB_MERGE_GONE : RSB_MERGE_SAME;
	if (!was)
		return RSB_MERGE_CHANGED;
	/* Also where the two sides differ by what a sync cuts out. */
	if (S_ISREG(leaf->mode) && S_ISREG(base->mode) &&
		(side == RSB_MERGE_HERE ? rsb_stamp_is_same(&base->here, &leaf->here)
					: rsb_stamp_is_same(&base->there, &leaf->there)))
		return RSB_MERGE_SAME;
	return rsb_tree_is_same(base, leaf) ? RSB_MERGE_SAME : RSB_MERGE_CHANGED;
}

int
rsb_merge_walk(const struct rsb_merge_trees *trees,
	int (*fn)(void *arg, const struct rsb_merge_path *path), void *arg)
{
	struct rsb_tree *all[] = { trees->here, trees->base, trees->there };
	size_t at[] = { 0, 0, 0 };

	for (;;) {
		struct rsb_tree_leaf *leaves[] = { NULL, NULL, NULL };
		const char *path = NULL;
		int r;

		for (size_t i = 0; i < 3; i++)
			if (at[i] < all[i]->n &&
				(!path || rsb_walk_compare(all[i]->leaves[at[i]].path, path) < 0))
				path = all[i]->leaves[at[i]].path;
		if (!path)
			return 0;
		for (size_t i = 0; i < 3; i++)
			if (at[i] < all[i]->n && strcmp(all[i]->leaves[at[i]].path, path) == 0)
				leaves[i] = &all[i]->leaves[at[i]++];
		r = fn(arg, &(struct rsb_merge_path){ .path = path,
				    .here = leaves[0],
				    .base = leaves[1],
				    .there = leaves[2] });
		if (r != 0)
			return r;
	}
}
