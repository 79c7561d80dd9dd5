/* SPDX-License-Identifier: MIT */
#ifndef RSB_SHARED_H
#define RSB_SHARED_H

/*
 * What must outlive a crash of the daemon, in memory that the supervisor holds: the nodes that
 * the kernel knows, the requests that it waits for, where the link's sequence stood. Everything
 * is found by index; there is no pointer in it, so a later process may map it anywhere.
 *
 * Only the daemon writes, under its one lock (fuse/fs.h); the supervisor reads after its death.
 * Pages that were never touched cost no memory, so the table has its full size from the start.
 */

#include "proto/limits.h"
#include "util/cleanup.h"

#define RSB_SHARED_MAGIC UINT64_C(0x7273626d61703031)
#define RSB_SHARED_FLIGHT_MAX 16384u /* requests of the kernel under way, a power of two */

struct rsb_shared_node {
	uint64_t id; /* what the sidecar calls it; 0: the slot is free */
	uint64_t ino;
	int64_t btime_sec;
	uint64_t btime_nsec;
	uint64_t n_kernel;   /* look-ups that the kernel has not forgotten */
	uint64_t n_given;    /* that the sidecar counts */
	uint32_t generation; /* of the slot; goes up at each use */
	uint32_t next_free;  /* index; 0: none */
};

struct rsb_shared_flight {
	uint64_t unique; /* 0: free */
	uint64_t nodeid;
	uint32_t opcode;
	uint32_t pid;
};

struct rsb_shared_head {
	uint64_t magic;
	uint64_t size;
	uint64_t link_fifo; /* of the last mutation handed to the link */
	uint64_t next_id;   /* first id that the link has not given out */
	uint32_t n_node;    /* slots ever used, from 1 up */
	uint32_t first_free;
	uint32_t n_flight;
	uint32_t pad;
};

struct rsb_shared {
	struct rsb_shared_head head;
	struct rsb_shared_flight flights[RSB_SHARED_FLIGHT_MAX];
	struct rsb_shared_node nodes[RSB_NODES_MAX + 1]; /* 0 is nobody, 1 the root */
};

/* Anonymous, kept over fork(2). Root is in it. */
rsb_nodiscard int rsb_shared_new(struct rsb_shared **ret_shared);
void rsb_shared_free(struct rsb_shared *shared);
RSB_DEFINE_CLEANUP(struct rsb_shared *, rsb_shared_free)

/* A free slot, zero but for its generation. -ENFILE: all are taken. */
rsb_nodiscard int rsb_shared_node_new(struct rsb_shared *shared, uint32_t *ret_index);
void rsb_shared_node_free(struct rsb_shared *shared, uint32_t index);

/* A request came; -ENFILE is no reason to refuse it, only to forget it at a crash. */
rsb_nodiscard int rsb_shared_flight_begin(
	struct rsb_shared *shared, const struct rsb_shared_flight *flight);
/* It was answered. Unknown ones are fine. */
void rsb_shared_flight_end(struct rsb_shared *shared, uint64_t unique);

#endif
