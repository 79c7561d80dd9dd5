/* SPDX-License-Identifier: MIT */
#ifndef RSB_INUSE_H
#define RSB_INUSE_H

/* Who keeps a daemon from being ended, in a sentence for people. */

#include "exec/daemon.h"

/*
 * -EBUSY with the sentence, as far as it is seen from here who uses it; else 0. can_force: whoever
 * asks has --force.
 */
rsb_nodiscard int rsb_inuse_check(
	const struct rsb_where *where, bool can_force, struct rsb_diag *diag);
/* It is known to be in use, by whomever. */
rsb_nodiscard int rsb_inuse_say(
	const struct rsb_where *where, bool can_force, struct rsb_diag *diag);

#endif
