/* SPDX-License-Identifier: MIT */
#ifndef RSB_PENDING_H
#define RSB_PENDING_H

/*
 * The calls that wait for their reply, by id and by deadline. Whatever ends a call (reply,
 * deadline, lost session, link/recall.h) takes it, or its fn, out of here first, so each ends
 * exactly once. One whose fn is gone stays until its reply has come: so a reply that belongs to
 * no call here was made up by the peer. No locks inside, no callbacks: who took a call runs its fn.
 */

#include "link/link.h"
#include "util/list.h"
#include "util/map.h"

enum rsb_pending_wish {
	RSB_PENDING_STAYS,
	RSB_PENDING_CANCEL,   /* the far side is asked to give it up */
	RSB_PENDING_WITHDRAW, /* ends at once, whatever becomes of it */
};

struct rsb_pending_call {
	uint64_t id;
	uint32_t op;
	rsb_call_fn fn; /* NULL: its caller was told, the reply is not here yet */
	void *arg;
	enum rsb_pending_wish wish; /* of link/recall.h, as the next two */
	int end_r;
	bool unsent;
	bool revives;         /* as in struct rsb_call_opts */
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
/* Borrowed; NULL: no such call waits. */
struct rsb_pending_call *rsb_pending_get(const struct rsb_pending *pending, uint64_t id);
/* Walks all; *cursor starts at 0, NULL at the end. None may be added meanwhile. */
struct rsb_pending_call *rsb_pending_next(const struct rsb_pending *pending, size_t *cursor);
/* It has no deadline any more. */
void rsb_pending_calm(struct rsb_pending *pending, struct rsb_pending_call *call);
/* One whose deadline is now or before, borrowed, calmed; NULL: none. */
struct rsb_pending_call *rsb_pending_late(struct rsb_pending *pending, uint64_t now_ns);
/* Appends all of them to list, by node. */
void rsb_pending_take_all(struct rsb_pending *pending, struct rsb_list *list);
/* 0: none. */
uint64_t rsb_pending_deadline(const struct rsb_pending *pending);

#endif
