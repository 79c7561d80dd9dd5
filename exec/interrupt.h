/* SPDX-License-Identifier: MIT */
#ifndef RSB_INTERRUPT_H
#define RSB_INTERRUPT_H

/* Work whose traces are cleared away when a signal ends it in its midst, wherever that is. */

#include "util/macro.h"

struct rsb_interrupt_end {
	int status; /* to exit with; when signal is 0 */
	int signal; /* that ended it */
};

/*
 * Goes on in a child: 0 is returned there, with nothing changed. In the parent, when the child has
 * ended, 1 and how; SIGINT, SIGTERM and SIGHUP, which it may have got alone, went to the child, and
 * the next one ends it as before. Before there are threads.
 */
rsb_nodiscard int rsb_interrupt_fork(struct rsb_interrupt_end *ret_end);

#endif
