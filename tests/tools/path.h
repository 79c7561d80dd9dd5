/* SPDX-License-Identifier: MIT */
#ifndef RSB_PATH_H
#define RSB_PATH_H

/*
 * A long network path for tests: TCP connections to one port are carried to another, and every byte
 * arrives rtt/2 after it was read, from a queue of timestamped chunks, so that the delay does not
 * lower the throughput of a stream. The first byte of a connection waits one rtt more, as for a TCP
 * handshake. All on one loop and its thread.
 */

#include <netinet/in.h>
#include <stdbool.h>

#include "util/loop.h"

struct rsb_path;

struct rsb_path_options {
	uint64_t rtt_ns;
	double mbit;         /* of each direction, all connections together; 0: no cap */
	uint64_t drop_after; /* bytes of a connection after which it is reset; 0: never */
	bool stalled;        /* neither read nor deliver, but keep everything open */
};

struct rsb_path_stats {
	uint64_t accepted;
	uint64_t resets;
	uint64_t bytes[2]; /* delivered to the target, to the client */
	uint64_t open;
};

/*
 * Every byte read, before its delay: dir 0 from the client, 1 from the target. id tells connections
 * apart; size 0: it ended. Returns how many get through: when less than size, the connection is
 * reset behind them.
 */
typedef size_t (*rsb_path_tap_fn)(
	void *arg, uint64_t id, int dir, const uint8_t *data, size_t size);

/* port 0: the kernel chooses, see rsb_path_port(). tap may be NULL. Loopback only. */
rsb_nodiscard int rsb_path_new(struct rsb_loop *loop, uint16_t port,
	const struct sockaddr_in *target, rsb_path_tap_fn tap, void *arg,
	struct rsb_path **ret_path);
void rsb_path_free(struct rsb_path *path);
uint16_t rsb_path_port(const struct rsb_path *path);
/* Read, change, set: the change holds from now on. */
struct rsb_path_options rsb_path_options(const struct rsb_path *path);
void rsb_path_set(struct rsb_path *path, const struct rsb_path_options *options);
/* Resets all connections. */
void rsb_path_drop(struct rsb_path *path);
/* Closes or reopens the listening port. */
rsb_nodiscard int rsb_path_refuse(struct rsb_path *path, bool on);
void rsb_path_stats(const struct rsb_path *path, struct rsb_path_stats *ret_stats);

#endif
