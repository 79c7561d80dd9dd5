/* SPDX-License-Identifier: MIT */
#ifndef RSB_SIM_H
#define RSB_SIM_H

/*
 * A world of one host and one sidecar over a network that breaks, in one process and one thread.
 * Both ends run the real handshake, session, streams, channels and codec; the applications on top,
 * the network and time are models here. A schedule is what one seed makes of it: which end moves
 * next, what gets through, what breaks when. It is the same on every machine.
 *
 * The oracle is the table of calls, which both models may look into: what a call is, what became of
 * it over there, and what its caller was told.
 */

#include <stdbool.h>

#include "proto/codec.h"
#include "proto/handshake.h"
#include "proto/session.h"
#include "proto/version.h"
#include "tests/prop/rng.h"

#define SIM_CALLS_MAX 64
#define SIM_PROCS_MAX 4
#define SIM_PING_NS RSB_NSEC_PER_SEC

/* What the seed chose for this schedule. */
struct sim_config {
	size_t host_send_max;
	size_t host_window;
	size_t sidecar_send_max;
	size_t sidecar_window;
	size_t chan_buffer;
	size_t value_max;  /* bytes of a call or reply */
	size_t stream_max; /* bytes of a stream */
	unsigned int n_call;
	unsigned int n_proc;
	unsigned int n_fault;
	unsigned int n_step; /* before the network is left in peace */
	bool large;          /* messages of two frames */
	bool slow;           /* applications seldom consume */
};

enum sim_told { SIM_WAITS, SIM_DONE, SIM_UNKNOWN };

struct sim_call {
	uint32_t op;
	uint64_t session; /* that it was sent in */
	uint64_t fifo;    /* its number among the mutations of that session; 0: a read */
	uint64_t after;
	size_t size; /* of the value that is written or read */
	uint64_t proc;
	enum sim_told told;
	uint64_t epoch; /* that it was executed in; 0: never */
};

struct sim_host;
struct sim_node;
struct sim_net;

struct sim_world {
	uint64_t seed;
	uint64_t step;
	struct rng rng;
	struct rsb_secret key;
	struct sim_config config;
	uint64_t now_ns;
	struct sim_call calls[SIM_CALLS_MAX]; /* of id - 1 */
	unsigned int n_call;                  /* made so far */
	uint64_t given_up;    /* processes with a stream that somebody reset, by bit */
	bool was_rolled_back; /* at some time in this schedule */

	struct sim_net *net;
	struct sim_host *host;
	struct sim_node *node;

	/* What the schedules came to. */
	uint64_t n_resumed;
	uint64_t n_renewed;
	uint64_t n_stale;
	uint64_t n_unknown;
};

/* Says what went wrong, with the seed, and ends the program. */
rsb_noreturn void sim_fail(const struct sim_world *world, const char *fmt, ...) RSB_PRINTF(2, 3);

#define sim_check(world, cond)                                                             \
	do {                                                                               \
		if (!(cond))                                                               \
			sim_fail((world), "%s:%d: not so: %s", __FILE__, __LINE__, #cond); \
	} while (0)

/* Byte number offset of what is called id. */
static inline uint8_t
sim_byte(uint64_t id, uint64_t offset)
{
	uint64_t v = id * 31 + offset * 7 + offset / 251;

	return (uint8_t)(v ^ (v >> 8));
}

/* size bytes of id from offset on; the caller frees them. */
uint8_t *sim_bytes(uint64_t id, uint64_t offset, size_t size);
void sim_check_bytes(
	const struct sim_world *world, uint64_t id, uint64_t offset, struct rsb_bytes data);
/* The length of a stream. */
uint64_t sim_stream_size(const struct sim_world *world, uint64_t chan);
struct sim_call *sim_call(struct sim_world *world, uint64_t id);
/* A session with the limits that it should keep; for each end. */
struct rsb_session *sim_session_new(const struct sim_world *world, size_t send_max, size_t window,
	unsigned int silent_max, const struct rsb_chan_ops *ops, void *arg);
/* Everything acknowledged, settled and given back. */
void sim_check_rest(const struct sim_world *world, struct rsb_session *session, size_t send_max);

/* The sidecar took a session up again: what the host was told of it must have happened there. */
void sim_check_join(const struct sim_world *world, bool resumed, uint64_t executed);

#endif
