/* SPDX-License-Identifier: MIT */
#include "util/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>

#include "util/cleanup.h"
#include "util/thread.h"

struct rsb_queue {
	struct rsb_mutex lock;
	struct rsb_cond filled; /* signalled for each item, broadcast at close */
	size_t head;            /* {lock} */
	size_t n;               /* {lock} */
	bool closed;            /* {lock} */
	size_t max;             /* {const after new} */
	void *items[];          /* {lock} ring of max */
};

int
rsb_queue_new(size_t max, struct rsb_queue **ret_queue)
{
	struct rsb_queue *queue;

	if (max == 0 || max > (SIZE_MAX / 2 - sizeof(*queue)) / sizeof(void *))
		return -EINVAL;
	queue = calloc(1, sizeof(*queue) + max * sizeof(void *));
	if (!queue)
		return -ENOMEM;
	rsb_mutex_init(&queue->lock);
	rsb_cond_init(&queue->filled);
	queue->max = max;
	*ret_queue = queue;
	return 0;
}

void
rsb_queue_free(struct rsb_queue *queue)
{
	if (!queue)
		return;
	rsb_cond_done(&queue->filled);
	rsb_mutex_done(&queue->lock);
	free(queue);
}

static int
push_locked(struct rsb_queue *queue, void *item)
{
	if (queue->closed)
		return -EPIPE;
	if (queue->n == queue->max)
		return -EAGAIN;
	queue->items[(queue->head + queue->n) % queue->max] = item;
	queue->n++;
	return 0;
}

static void *
pop_locked(struct rsb_queue *queue)
{
	void *item;

	if (queue->n == 0)
		return NULL;
	item = queue->items[queue->head];
	queue->head = (queue->head + 1) % queue->max;
	queue->n--;
	return item;
}

int
rsb_queue_push(struct rsb_queue *queue, void *item)
{
	int r;

	assert(item);
	rsb_mutex_lock(&queue->lock);
	r = push_locked(queue, item);
	if (r == 0)
		rsb_cond_signal(&queue->filled);
	rsb_mutex_unlock(&queue->lock);
	return r;
}

void *
rsb_queue_pop(struct rsb_queue *queue)
{
	void *item;

	rsb_mutex_lock(&queue->lock);
	while (queue->n == 0 && !queue->closed)
		rsb_cond_wait(&queue->filled, &queue->lock);
	item = pop_locked(queue);
	rsb_mutex_unlock(&queue->lock);
	return item;
}

void *
rsb_queue_try_pop(struct rsb_queue *queue)
{
	void *item;

	rsb_mutex_lock(&queue->lock);
	item = pop_locked(queue);
	rsb_mutex_unlock(&queue->lock);
	return item;
}

void
rsb_queue_close(struct rsb_queue *queue)
{
	rsb_mutex_lock(&queue->lock);
	queue->closed = true;
	rsb_cond_broadcast(&queue->filled);
	rsb_mutex_unlock(&queue->lock);
}

size_t
rsb_queue_len(struct rsb_queue *queue)
{
	size_t n;

	rsb_mutex_lock(&queue->lock);
	n = queue->n;
	rsb_mutex_unlock(&queue->lock);
	return n;
}
