/* SPDX-License-Identifier: MIT */
#ifndef RSB_QUEUE_H
#define RSB_QUEUE_H

/*
 * Bounded FIFO of pointers between threads. push never waits; pop may. After close, push fails
 * with -EPIPE and pop drains what is left, then returns NULL.
 */

#include "util/cleanup.h"
#include "util/macro.h"

struct rsb_queue;

/* max: 1 or more, allocated at once. */
rsb_nodiscard int rsb_queue_new(size_t max, struct rsb_queue **ret_queue);
/* Nobody may wait in pop. Items left are the caller's business: drain first. NULL is fine. */
void rsb_queue_free(struct rsb_queue *queue);
/* -EAGAIN when full, -EPIPE when closed. item is not NULL. */
rsb_nodiscard int rsb_queue_push(struct rsb_queue *queue, void *item);
/* Waits. NULL when closed and empty. */
void *rsb_queue_pop(struct rsb_queue *queue);
/* NULL when empty. */
void *rsb_queue_try_pop(struct rsb_queue *queue);
void rsb_queue_close(struct rsb_queue *queue);
size_t rsb_queue_len(struct rsb_queue *queue);

RSB_DEFINE_CLEANUP(struct rsb_queue *, rsb_queue_free)

#endif
