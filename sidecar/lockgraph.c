/* SPDX-License-Identifier: MIT */
#include "sidecar/lockgraph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "util/cleanup.h"

int
rsb_lockgraph_init(struct rsb_lockgraph *graph)
{
	*graph = (struct rsb_lockgraph){
		.holds = rsb_new_array(struct rsb_lockgraph_item, RSB_LOCKGRAPH_HOLDS_MAX),
		.waits = rsb_new_array(struct rsb_lockgraph_item, RSB_LOCKGRAPH_WAITS_MAX),
	};
	return graph->holds && graph->waits ? 0 : -ENOMEM;
}

void
rsb_lockgraph_done(struct rsb_lockgraph *graph)
{
	free(graph->holds);
	free(graph->waits);
}

/* ---- what is known ---- */

struct line {
	char kind[8]; /* POSIX, OFDLCK, FLOCK and so on */
	bool waits;
	int64_t pid;
	struct rsb_lockgraph_lock lock;
};

/* "lock:\t1: -> POSIX  ADVISORY  WRITE 123 fe:00:4711 0 EOF", without some of it. */
static bool
parse(const char *text, struct line *ret_line)
{
	const char *p = strstr(text, ": ");
	unsigned int dev_major, dev_minor;
	char mode[8], last[24];
	struct line line = { .waits = false };

	if (!p)
		return false;
	p += 2;
	p += strspn(p, " ");
	if (strncmp(p, "-> ", 3) == 0) {
		line.waits = true;
		p += 3;
	}
	if (sscanf(p, "%7s %*s %7s %" SCNd64 " %x:%x:%" SCNu64 " %" SCNu64 " %23s", line.kind, mode,
		    &line.pid, &dev_major, &dev_minor, &line.lock.ino, &line.lock.start, last) != 8)
		return false;
	line.lock.dev = makedev(dev_major, dev_minor);
	line.lock.write = strcmp(mode, "WRITE") == 0;
	line.lock.last = UINT64_MAX;
	if (strcmp(last, "EOF") != 0 && sscanf(last, "%" SCNu64, &line.lock.last) != 1)
		return false;
	*ret_line = line;
	return true;
}

static void
add(struct rsb_lockgraph_item *items, size_t *n, size_t max, const struct rsb_lockgraph_item *item)
{
	if (*n < max)
		items[(*n)++] = *item;
}

void
rsb_lockgraph_add_processes(struct rsb_lockgraph *graph, char *text)
{
	char *save = NULL;

	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		struct rsb_lockgraph_item item = { .is_process = true };
		struct line line;

		/* A process that is seen from here; locks of open files are ours or nobody's. */
		if (!parse(l, &line) || strcmp(line.kind, "POSIX") != 0 || line.pid <= 0)
			continue;
		item.who = (uint64_t)line.pid;
		item.lock = line.lock;
		if (line.waits)
			add(graph->waits, &graph->n_wait, RSB_LOCKGRAPH_WAITS_MAX, &item);
		else
			add(graph->holds, &graph->n_hold, RSB_LOCKGRAPH_HOLDS_MAX, &item);
	}
}

void
rsb_lockgraph_add_owner(
	struct rsb_lockgraph *graph, uint64_t owner, uint64_t dev, uint64_t ino, char *text)
{
	char *save = NULL;

	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		struct rsb_lockgraph_item item = { .who = owner };
		struct line line;

		if (strncmp(l, "lock:", 5) != 0 || !parse(l + 5, &line) ||
			strcmp(line.kind, "OFDLCK") != 0)
			continue;
		item.lock = line.lock;
		/* What stat(2) says of a file may differ from what its locks say. */
		item.lock.dev = dev;
		item.lock.ino = ino;
		add(graph->holds, &graph->n_hold, RSB_LOCKGRAPH_HOLDS_MAX, &item);
	}
}

void
rsb_lockgraph_add_wait(
	struct rsb_lockgraph *graph, uint64_t owner, const struct rsb_lockgraph_lock *lock)
{
	const struct rsb_lockgraph_item item = { .who = owner, .lock = *lock };

	add(graph->waits, &graph->n_wait, RSB_LOCKGRAPH_WAITS_MAX, &item);
}

/* ---- questions ---- */

static bool
same(const struct rsb_lockgraph_item *a, const struct rsb_lockgraph_item *b)
{
	return a->who == b->who && a->is_process == b->is_process;
}

static bool
conflict(const struct rsb_lockgraph_lock *a, const struct rsb_lockgraph_lock *b)
{
	return a->dev == b->dev && a->ino == b->ino && (a->write || b->write) &&
	       a->start <= b->last && b->start <= a->last;
}

bool
rsb_lockgraph_waits(const struct rsb_lockgraph *graph, uint64_t owner)
{
	for (size_t i = 0; i < graph->n_wait; i++)
		if (!graph->waits[i].is_process && graph->waits[i].who == owner)
			return true;
	return false;
}

bool
rsb_lockgraph_process_waits(const struct rsb_lockgraph *graph)
{
	for (size_t i = 0; i < graph->n_wait; i++)
		if (graph->waits[i].is_process)
			return true;
	return false;
}

int
rsb_lockgraph_holder(const struct rsb_lockgraph *graph, uint64_t owner,
	const struct rsb_lockgraph_lock *lock, uint64_t *ret_holder)
{
	for (size_t i = 0; i < graph->n_hold; i++) {
		const struct rsb_lockgraph_item *hold = &graph->holds[i];

		if (hold->is_process || hold->who == owner || !conflict(&hold->lock, lock))
			continue;
		*ret_holder = hold->who;
		return 1;
	}
	return 0;
}

/* Puts the waits of all who stand in the way of wait on the stack; true: origin is one of them. */
static bool
follow(struct rsb_lockgraph *graph, const struct rsb_lockgraph_item *origin,
	const struct rsb_lockgraph_item *wait, struct rsb_lockgraph_item **stack, size_t *depth)
{
	for (size_t i = 0; i < graph->n_hold; i++) {
		const struct rsb_lockgraph_item *hold = &graph->holds[i];

		if (same(hold, wait) || !conflict(&hold->lock, &wait->lock))
			continue;
		if (same(hold, origin))
			return true;
		for (size_t j = 0; j < graph->n_wait; j++) {
			struct rsb_lockgraph_item *next = &graph->waits[j];

			if (next->seen || !same(next, hold))
				continue;
			next->seen = true;
			stack[(*depth)++] = next;
		}
	}
	return false;
}

bool
rsb_lockgraph_closes(
	struct rsb_lockgraph *graph, uint64_t owner, const struct rsb_lockgraph_lock *lock)
{
	rsb_autofree struct rsb_lockgraph_item **stack =
		rsb_new_array(struct rsb_lockgraph_item *, graph->n_wait + 1);
	struct rsb_lockgraph_item origin = { .who = owner, .lock = *lock };
	size_t depth = 0;

	if (!stack)
		return false;
	for (size_t i = 0; i < graph->n_wait; i++)
		graph->waits[i].seen = false;
	stack[depth++] = &origin;
	while (depth > 0)
		if (follow(graph, &origin, stack[--depth], stack, &depth))
			return true;
	return false;
}
