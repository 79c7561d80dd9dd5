/* SPDX-License-Identifier: MIT */
#ifndef RSB_SYNCIN_H
#define RSB_SYNCIN_H

/*
 * Brings into a sandbox what changed here since the last sync, and only that. What changed there
 * too is a conflict, and stays on both sides as it is. Under the state lock.
 */

#include "keeper/syncout.h"

/*
 * As rsb_sync_out(), in the other direction: "comes" goes in, "goes" is removed there, "stays"
 * waits there to be brought out. trust_git and delete_many have no meaning.
 */
rsb_nodiscard int rsb_sync_update(const struct rsb_syncout *out, const struct rsb_sync_far *far,
	struct rsb_syncout_stats *ret_stats, struct rsb_diag *diag);

/*
 * Notes the tree as the same on both sides: after a sync in. What differs there already stays to be
 * brought back.
 */
rsb_nodiscard int rsb_sync_note(
	const struct rsb_syncout *out, const struct rsb_sync_far *far, struct rsb_diag *diag);

#endif
