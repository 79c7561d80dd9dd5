/* SPDX-License-Identifier: MIT */
#ifndef RSB_SIM_SIDECAR_H
#define RSB_SIM_SIDECAR_H

/*
 * The sidecar as a function of what happens to it. Everything reaches it as an event, and its
 * choices come with the events; so a copy of an older state is made by repeating them.
 */

#include "tests/sim/sim.h"

enum sim_event_type {
	SIM_JOIN,   /* a host proved the key and said hello */
	SIM_LOST,   /* connection number value is gone */
	SIM_FRAME,  /* of the connection */
	SIM_OUTPUT, /* send at most value frames */
	SIM_TICK,   /* time passed */
	SIM_WORK,   /* the application does something, chosen by value */
};

struct sim_event {
	enum sim_event_type type;
	uint64_t now_ns;
	uint64_t value;
	uint64_t nonce;         /* the next epoch, if this event begins one */
	struct rsb_bytes frame; /* owned by the event */
	/* Of JOIN: what hello said. */
	uint64_t conn;
	uint64_t session;
	uint64_t epoch;
	struct rsb_stream_state state;
};

struct sim_sidecar;

struct sim_sidecar *sim_sidecar_new(struct sim_world *world, uint64_t epoch);
void sim_sidecar_free(struct sim_sidecar *sidecar);
/* dry: a repetition; nothing goes out and the oracle is not told. */
void sim_sidecar_apply(struct sim_sidecar *sidecar, const struct sim_event *event, bool dry);

/* After a JOIN: what welcome says. */
uint64_t sim_sidecar_epoch(const struct sim_sidecar *sidecar);
bool sim_sidecar_resumed(const struct sim_sidecar *sidecar);
void sim_sidecar_state(const struct sim_sidecar *sidecar, struct rsb_stream_state *ret_state);
/* Calls, by bit id - 1. */
uint64_t sim_sidecar_executed(const struct sim_sidecar *sidecar);
/* The connection that it uses; 0: none. */
uint64_t sim_sidecar_conn(const struct sim_sidecar *sidecar);
void sim_sidecar_check_rest(const struct sim_sidecar *sidecar);

#endif
