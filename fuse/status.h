/* SPDX-License-Identifier: MIT */
#ifndef RSB_STATUS_H
#define RSB_STATUS_H

/* What ctl_status tells, as JSON. */

#include "fuse/control.h"
#include "fuse/uplink.h"

struct rsb_status {
	struct rsb_fs *fs;
	struct rsb_link *link;
	struct rsb_uplink *uplink;
	struct rsb_control *control; /* NULL: none */
	const char *mountpoint;      /* empty: not mounted */
	uint64_t linger_ns;          /* without a mount: how long it stays with nothing to do */
	uint64_t started_ns;
};

/* Appends the text. */
rsb_nodiscard int rsb_status_write(const struct rsb_status *status, struct rsb_buf *out);

#endif
