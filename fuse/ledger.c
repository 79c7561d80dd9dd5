/* SPDX-License-Identifier: MIT */
#include "fuse/ledger.h"

#include <errno.h>
#include <stdlib.h>

/* Which entries of one table are free. */
struct slots {
	uint32_t *next; /* index + 1 of the one behind it; 0: the last */
	uint32_t first;
	uint32_t *n; /* entries ever used, in the mapping */
	uint32_t max;
};

struct rsb_ledger {
	struct rsb_shared *shared;
	struct rsb_arena arena;
	struct slots flights;
	struct slots calls;
	struct slots handles;
	struct rsb_map by_unique; /* flights */
};

static int
slots_init(struct slots *slots, uint32_t *n, uint32_t max)
{
	*slots = (struct slots){ .n = n, .max = max };
	slots->next = rsb_new_array(uint32_t, max);
	return slots->next ? 0 : -ENOMEM;
}

static int
take_slot(struct slots *slots, uint32_t *ret_i)
{
	if (slots->first) {
		*ret_i = slots->first - 1;
		slots->first = slots->next[*ret_i];
		return 0;
	}
	if (*slots->n >= slots->max)
		return -ENFILE;
	*ret_i = (*slots->n)++;
	return 0;
}

static void
give_slot(struct slots *slots, uint32_t i)
{
	slots->next[i] = slots->first;
	slots->first = i + 1;
}

/* ---- after a crash ---- */

static int
find_flights(struct rsb_ledger *ledger)
{
	struct rsb_shared *shared = ledger->shared;
	int r = 0;

	for (uint32_t i = 0; i < shared->head.n_flight && r >= 0; i++) {
		struct rsb_shared_flight *flight = &shared->flights[i];

		if (!flight->state) {
			give_slot(&ledger->flights, i);
			continue;
		}
		rsb_arena_found(&ledger->arena, &flight->raw);
		if (flight->said)
			flight->said_before = flight->said;
		flight->said = RSB_SHARED_SILENT;
		r = rsb_map_put(&ledger->by_unique, flight->unique, flight);
	}
	return r;
}

static void
find_calls(struct rsb_ledger *ledger)
{
	struct rsb_shared *shared = ledger->shared;

	for (uint32_t i = 0; i < shared->head.n_call; i++) {
		struct rsb_shared_call *call = &shared->calls[i];

		if (!call->state) {
			give_slot(&ledger->calls, i);
			continue;
		}
		rsb_arena_found(&ledger->arena, &call->req);
	}
}

static void
find_handles(struct rsb_ledger *ledger)
{
	struct rsb_shared *shared = ledger->shared;

	for (uint32_t i = 0; i < shared->head.n_handle; i++) {
		struct rsb_shared_handle *handle = &shared->handles[i];

		if (!handle->state) {
			give_slot(&ledger->handles, i);
			continue;
		}
		/* The other one was being made, or given up. */
		handle->logs[1 - (handle->log & 1)].chain.size = 0;
		rsb_arena_found(&ledger->arena, &handle->logs[handle->log & 1].chain);
		rsb_arena_found(&ledger->arena, &handle->snap);
	}
}

int
rsb_ledger_new(struct rsb_shared *shared, struct rsb_ledger **ret_ledger)
{
	RSB_CLEANUP(rsb_ledger_freep) struct rsb_ledger *ledger = rsb_new(struct rsb_ledger);
	struct rsb_shared_head *head = &shared->head;
	int r;

	if (!ledger)
		return -ENOMEM;
	ledger->shared = shared;
	rsb_map_init(&ledger->by_unique, RSB_SHARED_FLIGHTS_MAX);
	r = rsb_arena_init(&ledger->arena, shared);
	if (r >= 0)
		r = slots_init(&ledger->flights, &head->n_flight, RSB_SHARED_FLIGHTS_MAX);
	if (r >= 0)
		r = slots_init(&ledger->calls, &head->n_call, RSB_SHARED_CALLS_MAX);
	if (r >= 0)
		r = slots_init(&ledger->handles, &head->n_handle, RSB_FHS_MAX);
	if (r >= 0)
		r = find_flights(ledger);
	if (r < 0)
		return r;
	find_calls(ledger);
	find_handles(ledger);
	rsb_arena_all_found(&ledger->arena);
	*ret_ledger = rsb_steal(&ledger);
	return 0;
}

void
rsb_ledger_free(struct rsb_ledger *ledger)
{
	if (!ledger)
		return;
	rsb_arena_done(&ledger->arena);
	rsb_map_done(&ledger->by_unique);
	free(ledger->flights.next);
	free(ledger->calls.next);
	free(ledger->handles.next);
	free(ledger);
}

struct rsb_arena *
rsb_ledger_arena(struct rsb_ledger *ledger)
{
	return &ledger->arena;
}

/* ---- flights ---- */

int
rsb_ledger_flight(struct rsb_ledger *ledger, const struct rsb_shared_flight *from,
	struct rsb_bytes raw, struct rsb_shared_flight **ret_flight)
{
	struct rsb_shared_flight copy = *from;
	struct rsb_shared_flight *flight;
	uint32_t i;
	int r;

	r = take_slot(&ledger->flights, &i);
	if (r < 0)
		return r;
	flight = &ledger->shared->flights[i];
	copy.state = 0;
	copy.raw = (struct rsb_shared_chain){ .size = 0 };
	*flight = copy;
	r = rsb_arena_append(&ledger->arena, &flight->raw, raw);
	if (r >= 0)
		r = rsb_map_put(&ledger->by_unique, flight->unique, flight);
	if (r < 0) {
		rsb_arena_drop(&ledger->arena, &flight->raw);
		give_slot(&ledger->flights, i);
		return r;
	}
	rsb_shared_publish(&flight->state, 1);
	*ret_flight = flight;
	return 0;
}

void
rsb_ledger_end_flight(struct rsb_ledger *ledger, struct rsb_shared_flight *flight)
{
	rsb_shared_publish(&flight->state, 0);
	(void)rsb_map_del(&ledger->by_unique, flight->unique);
	rsb_arena_drop(&ledger->arena, &flight->raw);
	give_slot(&ledger->flights, (uint32_t)(flight - ledger->shared->flights));
}

struct rsb_shared_flight *
rsb_ledger_flight_of(const struct rsb_ledger *ledger, uint64_t unique)
{
	return rsb_map_get(&ledger->by_unique, unique);
}

/* ---- calls ---- */

int
rsb_ledger_call(struct rsb_ledger *ledger, const struct rsb_shared_call *from, struct rsb_bytes req,
	struct rsb_shared_call **ret_call)
{
	struct rsb_shared_call copy = *from;
	struct rsb_shared_call *call;
	uint32_t i;
	int r;

	r = take_slot(&ledger->calls, &i);
	if (r < 0)
		return r;
	call = &ledger->shared->calls[i];
	copy.state = 0;
	copy.req = (struct rsb_shared_chain){ .size = 0 };
	*call = copy;
	r = rsb_arena_append(&ledger->arena, &call->req, req);
	if (r < 0) {
		give_slot(&ledger->calls, i);
		return r;
	}
	rsb_shared_publish(&call->state, 1);
	*ret_call = call;
	return 0;
}

void
rsb_ledger_end_call(struct rsb_ledger *ledger, struct rsb_shared_call *call)
{
	rsb_shared_publish(&call->state, 0);
	rsb_arena_drop(&ledger->arena, &call->req);
	give_slot(&ledger->calls, (uint32_t)(call - ledger->shared->calls));
}

/* ---- handles ---- */

int
rsb_ledger_handle(struct rsb_ledger *ledger, const struct rsb_shared_handle *from,
	struct rsb_shared_handle **ret_handle)
{
	struct rsb_shared_handle copy = *from;
	struct rsb_shared_handle *handle;
	uint32_t i;

	if (take_slot(&ledger->handles, &i) < 0)
		return -ENFILE;
	handle = &ledger->shared->handles[i];
	copy.state = 0;
	*handle = copy;
	rsb_shared_publish(&handle->state, 1);
	*ret_handle = handle;
	return 0;
}

void
rsb_ledger_end_handle(struct rsb_ledger *ledger, struct rsb_shared_handle *handle)
{
	rsb_shared_publish(&handle->state, 0);
	rsb_arena_drop(&ledger->arena, &handle->logs[0].chain);
	rsb_arena_drop(&ledger->arena, &handle->logs[1].chain);
	rsb_arena_drop(&ledger->arena, &handle->snap);
	give_slot(&ledger->handles, (uint32_t)(handle - ledger->shared->handles));
}
