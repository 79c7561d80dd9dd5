/* SPDX-License-Identifier: MIT */
#ifndef RSB_SNAPARCHIVE_H
#define RSB_SNAPARCHIVE_H

/* Looks at what a sandbox sent for a snapshot, before it counts. */

#include "keeper/tree.h"
#include "util/diag.h"

/*
 * fd: the archive; its place in the file is lost. tree: what was asked for, as it was listed. Of
 * each leaf that is in the archive hashed becomes true, and it becomes what is there; one that
 * changed since the list, or while it was read, is without a stamp, so that it is fetched again
 * next time. *ret_torn: there is one that changed while it was read.
 *
 * -EBADMSG, -EFBIG with a sentence: it holds something else, or more.
 */
rsb_nodiscard int rsb_snaparchive_check(
	int fd, struct rsb_tree *tree, bool *ret_torn, struct rsb_diag *diag);

#endif
