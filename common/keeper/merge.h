/* SPDX-License-Identifier: MIT */
#ifndef RSB_MERGE_H
#define RSB_MERGE_H

/* What becomes of one name in a sync: what both sides did to it since the last. Pure. */

#include "keeper/tree.h"

enum rsb_merge_did {
	RSB_MERGE_SAME, /* nothing; also: it neither was there nor is */
	RSB_MERGE_CHANGED,
	RSB_MERGE_GONE,
	RSB_MERGE_DID_N,
};

enum rsb_merge_act {
	RSB_MERGE_NOTHING,
	RSB_MERGE_TAKE,     /* what is there comes here */
	RSB_MERGE_DROP,     /* gone there, goes here */
	RSB_MERGE_GIVE,     /* what is here goes there */
	RSB_MERGE_REMOVE,   /* gone here, goes there */
	RSB_MERGE_CONFLICT, /* changed on both sides, or gone on one and changed on the other */
};

enum rsb_merge_act rsb_merge_decide(enum rsb_merge_did here, enum rsb_merge_did there);

/*
 * What the side did of which leaf is, its stamp being that of stamp_of. base: the manifest's;
 * either may be NULL. A file with another stamp and no hash counts as changed.
 */
enum rsb_merge_side { RSB_MERGE_HERE, RSB_MERGE_THERE };
enum rsb_merge_did rsb_merge_did(const struct rsb_tree_leaf *base, const struct rsb_tree_leaf *leaf,
	enum rsb_merge_side side);

/* Calls fn for each path of the three trees, in order; leaves that are not there are NULL. */
struct rsb_merge_path {
	const char *path;
	struct rsb_tree_leaf *here;
	struct rsb_tree_leaf *base;
	struct rsb_tree_leaf *there;
};
struct rsb_merge_trees {
	struct rsb_tree *here;
	struct rsb_tree *base;
	struct rsb_tree *there;
};
rsb_nodiscard int rsb_merge_walk(const struct rsb_merge_trees *trees,
	int (*fn)(void *arg, const struct rsb_merge_path *path), void *arg);

#endif
