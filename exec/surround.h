/* SPDX-License-Identifier: MIT */
#ifndef RSB_SURROUND_H
#define RSB_SURROUND_H

/* A sandbox of what belongs to another one already is rarely meant. */

#include <stdbool.h>

#include "util/diag.h"

/*
 * Whether a sandbox may be made of dir (absolute, without links); root: of the state directories.
 * -EINVAL with a sentence that names what it lies in: a mount; or, unless dir was named by the
 * user, another directory that was synced in, or a mount point whose sandbox is not mounted.
 */
rsb_nodiscard int rsb_surround_check(
	const char *root, const char *dir, bool named, struct rsb_diag *diag);

#endif
