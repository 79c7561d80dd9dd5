/* SPDX-License-Identifier: MIT */
#ifndef RSB_WORKER_H
#define RSB_WORKER_H

/*
 * Threads that run requests in the order in which they came: with one thread it is a session's
 * mutator, with several the pool. Threads start when there is work for them. The queue is bounded
 * by the number of requests that the gate lets live.
 */

#include <stddef.h>

#include "util/macro.h"

struct rsb_request;
struct rsb_workers;

#define RSB_WORKERS_MAX 16

/*
 * name: of the threads, at most 15 bytes, borrowed. n_max at most RSB_WORKERS_MAX. run is called on
 * a worker.
 */
rsb_nodiscard int rsb_workers_new(const char *name, unsigned int n_max,
	void (*run)(struct rsb_request *rq), struct rsb_workers **ret_workers);
/* Runs what is queued, ends the threads. NULL is fine. */
void rsb_workers_free(struct rsb_workers *workers);
/* The errno of pthread_create(3) when there is no thread at all. */
rsb_nodiscard int rsb_workers_push(struct rsb_workers *workers, struct rsb_request *rq);

#endif
