/* SPDX-License-Identifier: MIT */
#ifndef RSB_HANDOVER_H
#define RSB_HANDOVER_H

/*
 * The supervisor's part of an upgrade: another program goes on with the mount. The daemon is
 * killed, which it survives anywhere (fuse/recover.h), and one of the new program is started in its
 * place. Only when that one serves the mount the supervisor executes the new program too. Until
 * then a failure, whichever, costs no more than one more start of the daemon of before.
 */

#include "fuse/supervisor.h"

/* Takes program, a descriptor of it. */
void rsb_handover_begin(struct rsb_supervisor *s, int program);
/* The daemon has ended: another one is started, of whichever program. Negative: it cannot be. */
rsb_nodiscard int rsb_handover_daemon_ended(struct rsb_supervisor *s);
/* The daemon serves the mount. Does not return if it is one of the new program. */
void rsb_handover_ready(struct rsb_supervisor *s);
/* Now and then, while rsb_handover_runs(). */
void rsb_handover_tick(struct rsb_supervisor *s);
bool rsb_handover_runs(const struct rsb_supervisor *s);

#endif
