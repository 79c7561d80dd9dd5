/* SPDX-License-Identifier: MIT */
#ifndef RSB_SIM_HOST_H
#define RSB_SIM_HOST_H

/* The host: makes calls, mutations and reads, and processes with a stream each way. */

#include "tests/sim/sim.h"

struct sim_host;

struct sim_host *sim_host_new(struct sim_world *world);
void sim_host_free(struct sim_host *host);
/* Begins a connection, if it has none. */
void sim_host_connect(struct sim_host *host);
uint64_t sim_host_conn(const struct sim_host *host); /* 0: none */
uint64_t sim_host_session(const struct sim_host *host);
/* It learned that its connection is gone. */
void sim_host_lost(struct sim_host *host);
/* The program died and was started again. */
void sim_host_crash(struct sim_host *host);
/* A frame of its connection, borrowed. */
void sim_host_frame(struct sim_host *host, struct rsb_bytes frame);
/* Sends at most n frames. */
void sim_host_output(struct sim_host *host, unsigned int n);
void sim_host_tick(struct sim_host *host);
/* The application does something. */
void sim_host_work(struct sim_host *host);
/* Every call was made and has its answer, every stream its end. */
bool sim_host_is_done(const struct sim_host *host);
void sim_host_check_rest(const struct sim_host *host);

#endif
