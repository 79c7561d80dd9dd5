/* SPDX-License-Identifier: MIT */
#ifndef RSB_INIT_H
#define RSB_INIT_H

/*
 * pid 1 of a sandbox: finishes the mounts from inside, leaves the host's tree for good, and serves
 * envd's calls. Everything in the sandbox may see and trace it, so it holds nothing of the host.
 */

#include "util/macro.h"

#define RSB_INIT_CONFIG_FD 3
#define RSB_INIT_READY_FD 4
#define RSB_INIT_FD_FREE 16
#define RSB_INIT_NPROC_MAX 16384U /* processes of one id in the sandbox */
#define RSB_INIT_READY 1          /* the one byte that says so; a sentence says why not */

/* Does not return while the sandbox lives. */
rsb_nodiscard int rsb_init_run(void);

#endif
