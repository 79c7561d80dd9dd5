/* SPDX-License-Identifier: MIT */
#ifndef RSB_SNAPSHOT_H
#define RSB_SNAPSHOT_H

/*
 * Takes a snapshot of a workspace: its list is compared with what the newest chain knows, and what
 * changed comes as an archive, which is kept as it is. A new chain is begun where the deltas have
 * become too many or larger than their base, so that the whole tree is fetched at most about
 * as often as everything in it changed; the one before it stays until there is a third.
 *
 * What the sandbox sends is bounded in names (keeper/tree.h), bytes and time, and nothing of it
 * counts before all of it is looked at: an archive holds what was asked for, or it is none.
 */

#include "keeper/config.h"
#include "keeper/haul.h"
#include "keeper/snapstore.h"

#define RSB_SNAPSHOT_WHOLE_NS (30 * 60 * RSB_NSEC_PER_SEC) /* for one, however slow the way is */
#define RSB_SNAPSHOT_PATTERNS_MAX RSB_SYNC_PATTERNS_MAX
/* Deltas below this together are no reason for a new base. */
#define RSB_SNAPSHOT_SLACK ((uint64_t)16 << 20)

/* Appends what is left out. local_dir: whose .rsbignore counts; "" or not there: nobody's. */
rsb_nodiscard int rsb_snapshot_patterns(const struct rsb_config *config, const char *local_dir,
	struct rsb_buf *text, struct rsb_diag *diag);

struct rsb_snapshot {
	struct rsb_snapstore *store;
	const char *sandbox_id;
	struct rsb_bytes patterns;
	uint64_t max;    /* bytes of a chain */
	const char *why; /* at most RSB_SNAPSTORE_WHY_MAX bytes */
	bool whole;      /* a base, which is all that stays */
	/* May be NULL. busy: commands run, or ran since it was asked first. */
	bool (*busy)(void *arg);
	void (*progress)(void *arg, uint64_t bytes);
	void *arg;
};

/*
 * haul: connected, without a call under way. 0: *ret_point is new; 1: nothing changed since that
 * one. -EFBIG with a sentence: over max; errors of the way there. A failure leaves what there was.
 */
rsb_nodiscard int rsb_snapshot_take(const struct rsb_snapshot *snapshot, struct rsb_haul *haul,
	struct rsb_snappoint *ret_point, struct rsb_diag *diag);

/* All that the chain of i holds, up to it: -EBADMSG with a sentence. */
rsb_nodiscard int rsb_snapshot_tree(
	const struct rsb_snapstore *store, size_t i, struct rsb_tree *tree, struct rsb_diag *diag);

#endif
