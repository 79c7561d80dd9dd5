/* SPDX-License-Identifier: MIT */
#ifndef RSB_FARTREE_H
#define RSB_FARTREE_H

/* What is asked of a workspace over a haul that has no call under way: its list, and to remove. */

#include "keeper/haul.h"
#include "keeper/tree.h"

/* patterns: what is left out, one a line. -EBADMSG: the list makes no sense; -ENOSPC: too long. */
rsb_nodiscard int rsb_fartree_list(struct rsb_haul *haul, struct rsb_bytes patterns,
	struct rsb_tree *tree, struct rsb_diag *diag);
/*
 * The same as what changed since the list that the sandbox calls since: with mode 0 what went, and
 * every directory on the way. *ret_said: whether it is that, or the whole list.
 */
rsb_nodiscard int rsb_fartree_changes(struct rsb_haul *haul, struct rsb_bytes patterns,
	uint64_t since, struct rsb_tree *tree, struct rsb_haul_said *ret_said,
	struct rsb_diag *diag);
/*
 * paths: a NUL after each, the deepest first. What is gone already is fine, and a directory that is
 * not empty stays.
 */
rsb_nodiscard int rsb_fartree_remove(
	struct rsb_haul *haul, struct rsb_bytes paths, struct rsb_diag *diag);

#endif
