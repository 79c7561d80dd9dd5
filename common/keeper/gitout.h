/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITOUT_H
#define RSB_GITOUT_H

/*
 * What a sync never brings out of a sandbox: files from which git on this machine runs programs, or
 * that make a directory a repository which it would take them from. By names alone, whatever they
 * hold, and with the letters of either case, since a file system may not tell them apart. Pure.
 */

#include "keeper/tree.h"

/*
 * Why path stays there; NULL: it may come. leaf: what it would be here; here, there: what there is
 * on both sides.
 */
const char *rsb_gitout_held(const struct rsb_tree_leaf *leaf, const struct rsb_tree *here,
	const struct rsb_tree *there);

#endif
