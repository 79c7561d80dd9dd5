/* SPDX-License-Identifier: MIT */
#ifndef RSB_PROCREQ_H
#define RSB_PROCREQ_H

/* The requests about one process, which all name it in the same place. */

#include "proto/op.h"

union rsb_procreq {
	struct rsb_spawn_req spawn;
	struct rsb_wait_req wait;
	struct rsb_signal_req signal;
	struct rsb_kill_req kill;
	struct rsb_proc_req proc;
	struct rsb_tar_in_req tar_in;
};

/* Where the process is named. */
uint64_t *rsb_procreq_proc(union rsb_procreq *req);

#endif
