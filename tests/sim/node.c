/* SPDX-License-Identifier: MIT */
#include "tests/sim/node.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/net.h"

struct sim_node {
	struct sim_world *world;
	struct sim_sidecar *sidecar;
	uint64_t first_epoch;
	struct sim_event *events;
	size_t n_event;
	size_t cap;

	uint64_t conn; /* at the door: HELLO is expected; 0: nobody */
	struct rsb_handshake hs;
};

static void
begin(struct sim_node *node)
{
	node->first_epoch = rng_u64(&node->world->rng) | 1;
	node->sidecar = sim_sidecar_new(node->world, node->first_epoch);
}

struct sim_node *
sim_node_new(struct sim_world *world)
{
	struct sim_node *node = rsb_new(struct sim_node);

	if (!node)
		abort();
	node->world = world;
	begin(node);
	return node;
}

static void
forget_events(struct sim_node *node, size_t keep)
{
	while (node->n_event > keep)
		free((void *)node->events[--node->n_event].frame.data);
}

void
sim_node_free(struct sim_node *node)
{
	forget_events(node, 0);
	free(node->events);
	sim_sidecar_free(node->sidecar);
	free(node);
}

struct sim_sidecar *
sim_node_sidecar(struct sim_node *node)
{
	return node->sidecar;
}

size_t
sim_node_age(const struct sim_node *node)
{
	return node->n_event;
}

static void
happen(struct sim_node *node, struct sim_event event)
{
	event.now_ns = node->world->now_ns;
	event.nonce = rng_u64(&node->world->rng) | 1;
	if (node->n_event == node->cap) {
		node->cap = node->cap ? node->cap * 2 : 256;
		node->events = realloc(node->events, node->cap * sizeof(*node->events));
		if (!node->events)
			abort();
	}
	node->events[node->n_event++] = event;
	sim_sidecar_apply(node->sidecar, &event, false);
}

void
sim_node_event(struct sim_node *node, enum sim_event_type type, uint64_t value)
{
	happen(node, (struct sim_event){ .type = type, .value = value });
}

void
sim_node_crash(struct sim_node *node)
{
	forget_events(node, 0);
	sim_sidecar_free(node->sidecar);
	node->conn = 0;
	begin(node);
}

void
sim_node_roll_back(struct sim_node *node, size_t n)
{
	size_t i;

	forget_events(node, node->n_event - rsb_min(n, node->n_event));
	sim_sidecar_free(node->sidecar);
	node->conn = 0;
	node->sidecar = sim_sidecar_new(node->world, node->first_epoch);
	node->world->was_rolled_back = true;
	for (i = 0; i < node->n_event; i++)
		sim_sidecar_apply(node->sidecar, &node->events[i], true);
}

/* ---- the door ---- */

static void
send(struct sim_node *node, struct rsb_buf *out)
{
	struct sim_net *net = node->world->net;

	sim_net_push(net, &net->to_host, net->conn, rsb_buf_view(out));
	rsb_buf_done(out);
}

void
sim_node_accept(struct sim_node *node, uint64_t conn, const uint8_t *host_nonce)
{
	struct rsb_buf out = { 0 };

	node->conn = conn;
	node->hs = (struct rsb_handshake){ 0 };
	memcpy(node->hs.host_nonce, host_nonce, sizeof(node->hs.host_nonce));
	sim_check(node->world, rsb_handshake_challenge(&node->hs, &node->world->key, &out) == 0);
	send(node, &out);
}

static uint64_t
id_of(const struct sim_world *world, struct rsb_bytes id)
{
	uint64_t v = 0;

	sim_check(world, id.size == 0 || id.size == sizeof(v));
	if (id.size > 0)
		memcpy(&v, id.data, sizeof(v));
	return v;
}

static void
welcome(struct sim_node *node)
{
	struct rsb_stream_state state;
	struct rsb_buf out = { 0 };
	uint64_t epoch = sim_sidecar_epoch(node->sidecar);
	struct rsb_welcome w = {
		.epoch = { .data = (const uint8_t *)&epoch, .size = sizeof(epoch) },
		.resumed = sim_sidecar_resumed(node->sidecar),
	};

	sim_sidecar_state(node->sidecar, &state);
	w.received = state.received;
	w.acked = state.acked;
	w.window = state.limit;
	w.digest = state.digest;
	sim_check(node->world, rsb_handshake_welcome(&node->hs, &w, &out) == 0);
	send(node, &out);
}

static void
hello(struct sim_node *node, struct rsb_bytes frame)
{
	struct sim_world *world = node->world;
	struct sim_event event = { .type = SIM_JOIN, .conn = node->conn };
	struct rsb_diag diag = { 0 };
	struct rsb_hello h;
	int r;

	r = rsb_handshake_check_hello(&node->hs, &world->key, frame, &h, &diag);
	sim_check(world, r == 0);
	event.session = id_of(world, h.session_id);
	event.epoch = id_of(world, h.epoch);
	event.state = (struct rsb_stream_state){
		.received = h.received,
		.acked = h.acked,
		.limit = h.window,
		.digest = h.digest,
	};
	node->conn = 0;
	happen(node, event);
	sim_check_join(
		world, sim_sidecar_resumed(node->sidecar), sim_sidecar_executed(node->sidecar));
	welcome(node);
}

void
sim_node_frame(struct sim_node *node, struct rsb_bytes frame)
{
	struct sim_net *net = node->world->net;

	if (node->conn == net->conn) {
		hello(node, frame);
	} else if (sim_sidecar_conn(node->sidecar) == net->conn) {
		happen(node, (struct sim_event){ .type = SIM_FRAME, .frame = frame });
		if (sim_sidecar_conn(node->sidecar) == 0)
			net->cut = true;
		return;
	}
	free((void *)frame.data);
}
