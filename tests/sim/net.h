/* SPDX-License-Identifier: MIT */
#ifndef RSB_SIM_NET_H
#define RSB_SIM_NET_H

/*
 * The connection of the moment: a queue of frames each way. Once it is cut nothing new gets in;
 * what is on its way may still arrive, until the host begins another one.
 */

#include <stdbool.h>

#include "util/buf.h"

#define SIM_PIPE_MAX 4096

struct sim_pipe {
	struct rsb_bytes frames[SIM_PIPE_MAX]; /* owned */
	size_t head;
	size_t tail;
};

struct sim_net {
	uint64_t conn; /* number of the connection; 0: none yet */
	bool cut;
	struct sim_pipe to_host;
	struct sim_pipe to_sidecar;
};

struct sim_net *sim_net_new(void);
void sim_net_free(struct sim_net *net);
/* Another connection; returns its number. */
uint64_t sim_net_connect(struct sim_net *net);
/* A copy of frame, unless conn is over or full of what nobody reads. */
void sim_net_push(
	struct sim_net *net, struct sim_pipe *pipe, uint64_t conn, struct rsb_bytes frame);
/* The oldest, which the caller frees; data NULL: none. */
struct rsb_bytes sim_net_pop(struct sim_pipe *pipe);
void sim_net_clear(struct sim_pipe *pipe);
static inline size_t
sim_net_room(const struct sim_pipe *pipe)
{
	return SIM_PIPE_MAX - (pipe->tail - pipe->head);
}

#endif
