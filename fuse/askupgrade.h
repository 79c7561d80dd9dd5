/* SPDX-License-Identifier: MIT */
#ifndef RSB_ASKUPGRADE_H
#define RSB_ASKUPGRADE_H

/* rsb-mount --upgrade: asks the daemon of a mount to give way to this very program. */

#include "fuse/options.h"

/*
 * Returns when this program serves the mount; else nothing has changed, and the sentence says why.
 * options->socket is where the daemon listens; NULL: where the state says.
 */
rsb_nodiscard int rsb_askupgrade(
	const struct rsb_options *options, char *const *env, struct rsb_diag *diag);

#endif
