/* SPDX-License-Identifier: MIT */
#ifndef RSB_SIDES_H
#define RSB_SIDES_H

/*
 * Both sides of a sync as they are now, and the manifest of the last one: where every sync begins.
 */

#include "keeper/haul.h"
#include "keeper/syncout.h"
#include "keeper/syncplan.h"

struct rsb_sides {
	struct rsb_syncplan plan; /* its trees; not made yet */
	struct rsb_haul *haul;    /* the link by which it was asked, with no call under way */
	int root_fd;
	bool opened;
};

void rsb_sides_done(struct rsb_sides *sides); /* zeroed memory is fine */
/* Into zeroed memory; to be ended also on failure. */
rsb_nodiscard int rsb_sides_open(struct rsb_sides *sides, const struct rsb_syncout *out,
	const struct rsb_sync_far *far, struct rsb_diag *diag);

#endif
