/* SPDX-License-Identifier: MIT */
#include "fuse/procreq.h"

uint64_t *
rsb_procreq_proc(union rsb_procreq *req)
{
	_Static_assert(offsetof(struct rsb_spawn_req, proc) == 0 &&
			       offsetof(struct rsb_wait_req, proc) == 0 &&
			       offsetof(struct rsb_signal_req, proc) == 0 &&
			       offsetof(struct rsb_kill_req, proc) == 0 &&
			       offsetof(struct rsb_proc_req, proc) == 0 &&
			       offsetof(struct rsb_tar_in_req, proc) == 0,
		"proc comes first");
	return &req->proc.proc;
}
