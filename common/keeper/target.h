/* SPDX-License-Identifier: MIT */
#ifndef RSB_TARGET_H
#define RSB_TARGET_H

/*
 * Where a symbolic link of the sandbox may lead a local program: nowhere outside the mount. Pure
 * string work: what is relative must stay inside on every step, what is absolute and below the
 * workspace over there is made relative, what is below the mount point stays.
 */

#include "util/buf.h"

struct rsb_target_place {
	const char *workspace;  /* absolute, over there */
	const char *mountpoint; /* absolute, here */
	size_t depth;           /* directories between the root and the link */
};

/* *ret_target: caller frees. -EACCES: it leads out. -ENOMEM, -ENAMETOOLONG. */
rsb_nodiscard int rsb_target_map(
	const struct rsb_target_place *place, struct rsb_bytes target, char **ret_target);

#endif
