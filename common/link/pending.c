/* SPDX-License-Identifier: MIT */
#include "link/pending.h"

#include <assert.h>
#include <errno.h>

#define HEAP_MIN ((size_t)64)
#define HEAP_NONE SIZE_MAX

void
rsb_pending_init(struct rsb_pending *pending, size_t max)
{
	*pending = (struct rsb_pending){ .max = max };
	rsb_map_init(&pending->calls, max);
}

void
rsb_pending_done(struct rsb_pending *pending)
{
	assert(pending->calls.n == 0);
	rsb_map_done(&pending->calls);
	free(pending->heap);
}

static void
put(struct rsb_pending *pending, size_t at, struct rsb_pending_call *call)
{
	pending->heap[at] = call;
	call->heap_at = at;
}

static void
sift(struct rsb_pending *pending, struct rsb_pending_call *call)
{
	struct rsb_pending_call **heap = pending->heap;
	size_t at = call->heap_at;
	size_t child;

	for (; at > 0 && heap[(at - 1) / 2]->deadline_ns > call->deadline_ns; at = (at - 1) / 2)
		put(pending, at, heap[(at - 1) / 2]);
	for (;;) {
		child = 2 * at + 1;
		if (child + 1 < pending->n_heap &&
			heap[child + 1]->deadline_ns < heap[child]->deadline_ns)
			child++;
		if (child >= pending->n_heap || heap[child]->deadline_ns >= call->deadline_ns)
			break;
		put(pending, at, heap[child]);
		at = child;
	}
	put(pending, at, call);
}

static int
heap_reserve(struct rsb_pending *pending)
{
	struct rsb_pending_call **heap;
	size_t cap;

	if (pending->n_heap < pending->cap_heap)
		return 0;
	cap = rsb_max(HEAP_MIN, pending->cap_heap * 2);
	heap = reallocarray(pending->heap, cap, sizeof(struct rsb_pending_call *));
	if (!heap)
		return -ENOMEM;
	pending->heap = heap;
	pending->cap_heap = cap;
	return 0;
}

int
rsb_pending_add(struct rsb_pending *pending, struct rsb_pending_call *call)
{
	int r;

	if (pending->calls.n >= pending->max)
		return -EAGAIN;
	r = heap_reserve(pending);
	if (r < 0)
		return r;
	r = rsb_map_put(&pending->calls, call->id, call);
	if (r < 0)
		return r;
	call->heap_at = HEAP_NONE;
	if (call->deadline_ns) {
		put(pending, pending->n_heap++, call);
		sift(pending, call);
	}
	return 0;
}

static void
heap_del(struct rsb_pending *pending, struct rsb_pending_call *call)
{
	struct rsb_pending_call *last;

	if (call->heap_at == HEAP_NONE)
		return;
	last = pending->heap[--pending->n_heap];
	if (last != call) {
		put(pending, call->heap_at, last);
		sift(pending, last);
	}
	call->heap_at = HEAP_NONE;
}

struct rsb_pending_call *
rsb_pending_take(struct rsb_pending *pending, uint64_t id)
{
	struct rsb_pending_call *call = rsb_map_del(&pending->calls, id);

	if (call)
		heap_del(pending, call);
	return call;
}

struct rsb_pending_call *
rsb_pending_get(const struct rsb_pending *pending, uint64_t id)
{
	return rsb_map_get(&pending->calls, id);
}

struct rsb_pending_call *
rsb_pending_next(const struct rsb_pending *pending, size_t *cursor)
{
	return rsb_map_next(&pending->calls, cursor, NULL);
}

void
rsb_pending_calm(struct rsb_pending *pending, struct rsb_pending_call *call)
{
	heap_del(pending, call);
}

struct rsb_pending_call *
rsb_pending_late(struct rsb_pending *pending, uint64_t now_ns)
{
	struct rsb_pending_call *call;

	if (pending->n_heap == 0 || pending->heap[0]->deadline_ns > now_ns)
		return NULL;
	call = pending->heap[0];
	heap_del(pending, call);
	return call;
}

void
rsb_pending_take_all(struct rsb_pending *pending, struct rsb_list *list)
{
	struct rsb_pending_call *call;
	size_t cursor = 0;
	uint64_t id;

	pending->n_heap = 0;
	while ((call = rsb_map_next(&pending->calls, &cursor, &id)) != NULL) {
		(void)rsb_map_del(&pending->calls, id); /* it is the one in hand */
		rsb_list_append(list, &call->node);
	}
}

uint64_t
rsb_pending_deadline(const struct rsb_pending *pending)
{
	return pending->n_heap ? pending->heap[0]->deadline_ns : 0;
}
