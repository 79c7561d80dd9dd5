/* SPDX-License-Identifier: MIT */
#include "tests/sim/net.h"

#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

struct sim_net *
sim_net_new(void)
{
	struct sim_net *net = rsb_new(struct sim_net);

	if (!net)
		abort();
	net->cut = true;
	return net;
}

struct rsb_bytes
sim_net_pop(struct sim_pipe *pipe)
{
	if (pipe->head == pipe->tail)
		return (struct rsb_bytes){ 0 };
	return pipe->frames[pipe->head++ % SIM_PIPE_MAX];
}

void
sim_net_clear(struct sim_pipe *pipe)
{
	struct rsb_bytes frame;

	while ((frame = sim_net_pop(pipe)).data)
		free((void *)frame.data);
}

void
sim_net_free(struct sim_net *net)
{
	sim_net_clear(&net->to_host);
	sim_net_clear(&net->to_sidecar);
	free(net);
}

uint64_t
sim_net_connect(struct sim_net *net)
{
	sim_net_clear(&net->to_host);
	sim_net_clear(&net->to_sidecar);
	net->cut = false;
	return ++net->conn;
}

void
sim_net_push(struct sim_net *net, struct sim_pipe *pipe, uint64_t conn, struct rsb_bytes frame)
{
	uint8_t *copy;

	if (net->cut || conn != net->conn || sim_net_room(pipe) == 0)
		return;
	copy = malloc(frame.size);
	if (!copy)
		abort();
	memcpy(copy, frame.data, frame.size);
	pipe->frames[pipe->tail++ % SIM_PIPE_MAX] =
		(struct rsb_bytes){ .data = copy, .size = frame.size };
}
