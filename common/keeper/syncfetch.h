/* SPDX-License-Identifier: MIT */
#ifndef RSB_SYNCFETCH_H
#define RSB_SYNCFETCH_H

/* The contents that a sync needs from a sandbox, staged here; then the plan is settled by them. */

#include "keeper/sides.h"
#include "keeper/stage.h"

struct rsb_syncfetch {
	const struct rsb_syncout *out;
	struct rsb_sides *sides;
	bool (*wanted)(const struct rsb_syncplan_job *job);
	bool publishes; /* what is staged is to be on the disk */
	/* Filled. */
	struct rsb_stage *stage; /* NULL: nothing was needed */
	struct rsb_tree staged;
	uint64_t packed; /* bytes that came */
};

/* What of the plan is only to be compared. */
bool rsb_syncfetch_unsure(const struct rsb_syncplan_job *job);
rsb_nodiscard int rsb_syncfetch_run(struct rsb_syncfetch *fetch, struct rsb_diag *diag);
void rsb_syncfetch_done(struct rsb_syncfetch *fetch);

#endif
