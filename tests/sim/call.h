/* SPDX-License-Identifier: MIT */
#ifndef RSB_SIM_CALL_H
#define RSB_SIM_CALL_H

/* Calls as messages: setxattr is the mutation, getxattr the read, tar_in the process. */

#include "tests/sim/sim.h"

void sim_call_encode(const struct sim_call *call, uint64_t id, struct rsb_buf *out);
/* What a request says must be what the oracle says. Returns the call's id. */
uint64_t sim_call_check_request(
	struct sim_world *world, const struct rsb_msg *msg, struct sim_call *ret_call);
void sim_call_encode_reply(const struct sim_call *call, uint64_t id, struct rsb_buf *out);
void sim_call_check_reply(const struct sim_world *world, const struct sim_call *call,
	const struct rsb_call_head *head);

#endif
