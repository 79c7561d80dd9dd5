/* SPDX-License-Identifier: MIT */
#ifndef RSB_SIM_NODE_H
#define RSB_SIM_NODE_H

/*
 * The machine that the sidecar runs on: its front door, where the handshake takes place, and a
 * journal of all that ever happened to the sidecar, so that it can become an older copy of itself.
 */

#include "tests/sim/sidecar.h"

struct sim_node;

struct sim_node *sim_node_new(struct sim_world *world);
void sim_node_free(struct sim_node *node);
struct sim_sidecar *sim_node_sidecar(struct sim_node *node);

/* The host began connection conn, with this nonce in its upgrade. */
void sim_node_accept(struct sim_node *node, uint64_t conn, const uint8_t *host_nonce);
/* A frame of the connection of the moment; taken over. */
void sim_node_frame(struct sim_node *node, struct rsb_bytes frame);
/* LOST, OUTPUT, TICK, WORK. */
void sim_node_event(struct sim_node *node, enum sim_event_type type, uint64_t value);

/* The process died and another one was started. */
void sim_node_crash(struct sim_node *node);
/* It is now as it was n events ago. */
void sim_node_roll_back(struct sim_node *node, size_t n);
size_t sim_node_age(const struct sim_node *node);

#endif
