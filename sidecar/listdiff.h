/* SPDX-License-Identifier: MIT */
#ifndef RSB_LISTDIFF_H
#define RSB_LISTDIFF_H

/*
 * What is different in one list of the workspace from an earlier one. Both are as tree_out sends
 * them: encoded rsb_leaf, each after its size as four bytes, in the order of a walk. They are gone
 * through once, by pread(2); nothing but the way to a name is in memory.
 */

#include "util/buf.h"

struct rsb_listdiff {
	int old_fd;
	int new_fd;
	uint32_t version; /* of the encoding */
	/*
	 * In the order of a walk: what is new, is not the same, or is too young to tell; what went,
	 * with mode 0; and each directory on the way to one of those, before it. Other results than
	 * 0 end it and are returned.
	 */
	int (*emit)(void *arg, struct rsb_bytes leaf);
	void *arg;
};

/* -EBADMSG: one of them is no list. */
rsb_nodiscard int rsb_listdiff(const struct rsb_listdiff *diff);

#endif
