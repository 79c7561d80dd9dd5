/* SPDX-License-Identifier: MIT */
#ifndef RSB_GIVEWAY_H
#define RSB_GIVEWAY_H

/* The daemon's part of an upgrade: whether it can give way to another program. Main thread. */

#include "fuse/control.h"

/*
 * *ret_program: a descriptor of it, the caller's, for rsb_giveway_go(). -EPROTONOSUPPORT: it lays
 * out what it would take over in another way, -ENOTCONN: nothing is mounted, -EOPNOTSUPP: the
 * kernel cannot, -EBUSY: commands run and there is no force; and what open(2) says of the program.
 */
rsb_nodiscard int rsb_giveway_check(
	struct rsb_control *control, const struct rsb_ctl_upgrade_req *req, int *ret_program);
/* Asks the supervisor, who kills this daemon for it. Takes program. */
void rsb_giveway_go(const struct rsb_control *control, int program);
/* How the last one went, enum rsb_shared_upgrade. */
uint32_t rsb_giveway_outcome(const struct rsb_control *control);

#endif
