/* SPDX-License-Identifier: MIT */
#ifndef RSB_SPAWNREQ_H
#define RSB_SPAWNREQ_H

/* The request for a command, made of what is to run and of what this process passes on to it. */

#include "exec/client.h"
#include "exec/run.h"

/* fn gets struct rsb_spawn_rep. -E2BIG with a sentence; those of rsb_client_call(). */
rsb_nodiscard int rsb_spawnreq_send(struct rsb_client *client, const struct rsb_run *run,
	uint64_t proc, rsb_client_fn fn, void *arg, struct rsb_diag *diag);

#endif
