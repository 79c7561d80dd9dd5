/* SPDX-License-Identifier: MIT */
#ifndef RSB_PENDING_H
#define RSB_PENDING_H

/*
 * The calls that wait for their reply, by id and by deadline. Whatever ends a call (reply,
 * deadline, lost session) takes it out of here first, so each ends exactly once. No locks
 * inside, no callbacks: who took a call runs its fn.
 */

#include "link/link.h"
#include "util/list.h"
#include "util/map.h"

struct rsb_pending_call {
	uint64_t id;
	uint32_t op;
	rsb_call_fn fn;
	void *arg;
	uint64_t deadline_ns; /* 0: none */
	size_t heap_at;       /* of pending.c */
	struct rsb_list node; /* free for whoever took it */
};

struct rsb_pending {
	struct rsb_map calls;
	struct rsb_pending_call **heap; /* of those with a deadline, the earliest first */
	size_t n_heap;
	size_t cap_heap;
	size_t max;
};

void rsb_pending_init(struct rsb_pending *pending, size_t max);
/* There is none left: rsb_pending_take_all() came first. */
void rsb_pending_done(struct rsb_pending *pending);

/* Takes call. -EAGAIN: there are max already; -ENOMEM; then it stays the caller's. */
rsb_nodiscard int rsb_pending_add(struct rsb_pending *pending, struct rsb_pending_call *call);
/* The caller's from now on; NULL: no such call waits. */
struct rsb_pending_call *rsb_pending_take(struct rsb_pending *pending, uint64_t id);
bool rsb_pending_has(const struct rsb_pending *pending, uint64_t id);
/* One whose deadline is now or before; NULL: none. */
struct rsb_pending_call *rsb_pending_take_late(struct rsb_pending *pending, uint64_t now_ns);
/* Appends all of them to list, by node. */
void rsb_pending_take_all(struct rsb_pending *pending, struct rsb_list *list);
/* 0: none. */
uint64_t rsb_pending_deadline(const struct rsb_pending *pending);

#endif
