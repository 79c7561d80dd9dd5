/* SPDX-License-Identifier: MIT */
#ifndef RSB_LOCKGRAPH_H
#define RSB_LOCKGRAPH_H

/*
 * Who waits for whose POSIX locks: the host's owners, whose waits the kernel here does not know,
 * and the sandbox's processes, by proc_locks(5). A wait that would close a circle is EDEADLK, as
 * the kernel finds it among its own. Lives for one question; one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/macro.h"

/* Above these nothing is found: the question is asked under a lock. */
#define RSB_LOCKGRAPH_HOLDS_MAX 4096u
#define RSB_LOCKGRAPH_WAITS_MAX 2048u

struct rsb_lockgraph_lock {
	uint64_t dev; /* as st_dev */
	uint64_t ino;
	uint64_t start;
	uint64_t last; /* the last byte; UINT64_MAX: to the end, wherever that is */
	bool write;
};

struct rsb_lockgraph_item {
	uint64_t who;
	bool is_process; /* who is a process of the sandbox, else an owner of the host's */
	bool seen;
	struct rsb_lockgraph_lock lock;
};

struct rsb_lockgraph {
	struct rsb_lockgraph_item *holds;
	size_t n_hold;
	struct rsb_lockgraph_item *waits;
	size_t n_wait;
};

/* Empty. -ENOMEM. */
rsb_nodiscard int rsb_lockgraph_init(struct rsb_lockgraph *graph);
void rsb_lockgraph_done(struct rsb_lockgraph *graph); /* after init failed, too */

/* Lines of /proc/locks: what processes hold and wait for. What is over the maxima is left out. */
void rsb_lockgraph_add_processes(struct rsb_lockgraph *graph, char *text);
/* Lines as in /proc/self/fdinfo/FD of a descriptor of the owner, on dev and ino as stat(2) says. */
void rsb_lockgraph_add_owner(
	struct rsb_lockgraph *graph, uint64_t owner, uint64_t dev, uint64_t ino, char *text);
void rsb_lockgraph_add_wait(
	struct rsb_lockgraph *graph, uint64_t owner, const struct rsb_lockgraph_lock *lock);

bool rsb_lockgraph_waits(const struct rsb_lockgraph *graph, uint64_t owner);
/* Some process of the sandbox waits. */
bool rsb_lockgraph_process_waits(const struct rsb_lockgraph *graph);
/* Another owner whose lock stands in the way of this one: 1; 0: none. */
int rsb_lockgraph_holder(const struct rsb_lockgraph *graph, uint64_t owner,
	const struct rsb_lockgraph_lock *lock, uint64_t *ret_holder);
/* Whoever has it waits, directly or over others, for this owner. */
bool rsb_lockgraph_closes(
	struct rsb_lockgraph *graph, uint64_t owner, const struct rsb_lockgraph_lock *lock);

#endif
