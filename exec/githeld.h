/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITHELD_H
#define RSB_GITHELD_H

/* Accepts what a mount holds back from git here (fuse/guard.h), as it is now. */

#include "util/diag.h"
#include "util/json.h"

/*
 * path NULL: of all of the mount that the current directory is on. 1: *ret_array has {"path",
 * "why"} of what was accepted, perhaps of nothing; 0: path is on no mount. Else negative errno.
 */
rsb_nodiscard int rsb_githeld_accept(
	const char *path, char **env, struct rsb_json **ret_array, struct rsb_diag *diag);

#endif
