/* SPDX-License-Identifier: MIT */
#include "fuse/shared.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int
rsb_shared_new(struct rsb_shared **ret_shared)
{
	struct rsb_shared *shared;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED)
		return -errno;
	shared->head.magic = RSB_SHARED_MAGIC;
	shared->head.size = sizeof(*shared);
	shared->head.n_node = 1;
	shared->nodes[1].id = 1;
	shared->nodes[1].n_kernel = 1;
	*ret_shared = shared;
	return 0;
}

void
rsb_shared_free(struct rsb_shared *shared)
{
	if (shared)
		(void)munmap(shared, sizeof(*shared));
}

int
rsb_shared_node_new(struct rsb_shared *shared, uint32_t *ret_index)
{
	struct rsb_shared_head *head = &shared->head;
	uint32_t index = head->first_free;
	struct rsb_shared_node *node;
	uint32_t generation;

	if (index) {
		head->first_free = shared->nodes[index].next_free;
	} else {
		if (head->n_node >= RSB_NODES_MAX)
			return -ENFILE;
		index = ++head->n_node;
	}
	node = &shared->nodes[index];
	generation = node->generation + 1;
	memset(node, 0, sizeof(*node));
	node->generation = generation;
	*ret_index = index;
	return 0;
}

void
rsb_shared_node_free(struct rsb_shared *shared, uint32_t index)
{
	struct rsb_shared_node *node = &shared->nodes[index];

	node->id = 0;
	/* A generation must not come back: at the end of its numbers the slot stays unused. */
	if (node->generation == UINT32_MAX)
		return;
	node->next_free = shared->head.first_free;
	shared->head.first_free = index;
}

/* Requests are even numbers that go up by two, so their low bits spread well as they are. */
static uint32_t
home(uint64_t unique)
{
	return (uint32_t)(unique >> 1) & (RSB_SHARED_FLIGHT_MAX - 1);
}

int
rsb_shared_flight_begin(struct rsb_shared *shared, const struct rsb_shared_flight *flight)
{
	uint32_t i = home(flight->unique);

	/* An eighth stays free, so that probing ends. */
	if (shared->head.n_flight >= RSB_SHARED_FLIGHT_MAX / 8 * 7)
		return -ENFILE;
	while (shared->flights[i].unique)
		i = (i + 1) & (RSB_SHARED_FLIGHT_MAX - 1);
	shared->flights[i] = *flight;
	shared->head.n_flight++;
	return 0;
}

void
rsb_shared_flight_end(struct rsb_shared *shared, uint64_t unique)
{
	const uint32_t mask = RSB_SHARED_FLIGHT_MAX - 1;
	uint32_t hole = home(unique);

	while (shared->flights[hole].unique && shared->flights[hole].unique != unique)
		hole = (hole + 1) & mask;
	if (!shared->flights[hole].unique)
		return;
	/* Later ones of the same run move up, or a look-up would stop at the hole. */
	for (uint32_t i = (hole + 1) & mask; shared->flights[i].unique; i = (i + 1) & mask) {
		uint32_t want = home(shared->flights[i].unique);

		if (((i - want) & mask) >= ((i - hole) & mask)) {
			shared->flights[hole] = shared->flights[i];
			hole = i;
		}
	}
	memset(&shared->flights[hole], 0, sizeof(shared->flights[hole]));
	shared->head.n_flight--;
}
