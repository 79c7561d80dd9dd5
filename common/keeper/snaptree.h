/* SPDX-License-Identifier: MIT */
#ifndef RSB_SNAPTREE_H
#define RSB_SNAPTREE_H

/*
 * Trees of snapshots: what changed between two moments, and what a base and its deltas make
 * together. A leaf with mode 0 is a tombstone: the name was there before and is not any more. Pure.
 */

#include "keeper/tree.h"

/* By the stamp, which no program sets; the rest catches what a file system makes of it. */
bool rsb_snaptree_is_unchanged(const struct rsb_tree_leaf *known, const struct rsb_tree_leaf *now);

/* FIFOs, sockets and devices are in no snapshot. */
bool rsb_snaptree_holds(const struct rsb_tree_leaf *leaf);

/*
 * Lays delta, which is emptied, over tree. bury: tombstones end the leaf that they are about; else
 * they stay, for a delta that stands for several.
 */
rsb_nodiscard int rsb_snaptree_overlay(struct rsb_tree *tree, struct rsb_tree *delta, bool bury);

/*
 * What is to be fetched to come from known to now, and tombstones of what went; both into empty
 * trees. With each name comes its directory, whose modification time it changes. What is below a
 * directory that could not be listed counts as it was.
 */
rsb_nodiscard int rsb_snaptree_diff(const struct rsb_tree *known, const struct rsb_tree *now,
	struct rsb_tree *changed, struct rsb_tree *removed);

/*
 * The same of what a sandbox itself says that it changed, with tombstones and with the directories
 * on the way: nothing of known is needed.
 */
rsb_nodiscard int rsb_snaptree_sort(
	const struct rsb_tree *said, struct rsb_tree *changed, struct rsb_tree *removed);

/*
 * What stands in the way of delta in a directory that is like tree: names that go, and those that
 * become, or are no more, a directory. The deepest first, a NUL after each.
 */
rsb_nodiscard int rsb_snaptree_obstacles(
	const struct rsb_tree *tree, const struct rsb_tree *delta, struct rsb_buf *paths);

/*
 * The first name at which got is not what want says: type, permissions, size, target, modification
 * time of a file; NULL: none. Borrowed. What is in other, and directories, may be there as well.
 */
const char *rsb_snaptree_difference(
	const struct rsb_tree *want, const struct rsb_tree *other, const struct rsb_tree *got);

#endif
