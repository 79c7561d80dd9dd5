/* SPDX-License-Identifier: MIT */
#include "sidecar/worker.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>

#include "sidecar/request.h"
#include "util/cleanup.h"
#include "util/thread.h"

struct rsb_workers {
	const char *name;                    /* {const after new} */
	unsigned int n_max;                  /* {const after new} */
	void (*run)(struct rsb_request *rq); /* {const after new} */
	struct rsb_mutex lock;
	struct rsb_cond filled;             /* a request or the end came */
	struct rsb_list queue;              /* {lock} */
	unsigned int n_idle;                /* {lock} */
	size_t n_queued;                    /* {lock} */
	bool closed;                        /* {lock} */
	unsigned int n_thread;              /* {pushing thread} */
	pthread_t threads[RSB_WORKERS_MAX]; /* {pushing thread} */
};

int
rsb_workers_new(const char *name, unsigned int n_max, void (*run)(struct rsb_request *rq),
	struct rsb_workers **ret_workers)
{
	struct rsb_workers *w = rsb_new(struct rsb_workers);

	if (!w)
		return -ENOMEM;
	assert(n_max > 0 && n_max <= RSB_WORKERS_MAX);
	w->name = name;
	w->n_max = n_max;
	w->run = run;
	rsb_mutex_init(&w->lock);
	rsb_cond_init(&w->filled);
	rsb_list_init(&w->queue);
	*ret_workers = w;
	return 0;
}

void
rsb_workers_free(struct rsb_workers *w)
{
	if (!w)
		return;
	rsb_mutex_lock(&w->lock);
	w->closed = true;
	rsb_cond_broadcast(&w->filled);
	rsb_mutex_unlock(&w->lock);
	for (unsigned int i = 0; i < w->n_thread; i++)
		(void)pthread_join(w->threads[i], NULL); /* it is one of ours */
	rsb_cond_done(&w->filled);
	rsb_mutex_done(&w->lock);
	free(w);
}

/* NULL: the end. */
static struct rsb_request *
next(struct rsb_workers *w)
{
	struct rsb_request *rq = NULL;

	rsb_mutex_lock(&w->lock);
	w->n_idle++;
	while (rsb_list_empty(&w->queue) && !w->closed)
		rsb_cond_wait(&w->filled, &w->lock);
	w->n_idle--;
	if (!rsb_list_empty(&w->queue)) {
		rq = rsb_list_entry(w->queue.next, struct rsb_request, link);
		rsb_list_remove(&rq->link);
		w->n_queued--;
	}
	rsb_mutex_unlock(&w->lock);
	return rq;
}

static void *
work(void *arg)
{
	struct rsb_workers *w = arg;
	struct rsb_request *rq;

	while ((rq = next(w)))
		w->run(rq);
	return NULL;
}

int
rsb_workers_push(struct rsb_workers *w, struct rsb_request *rq)
{
	bool more;
	int r;

	rsb_mutex_lock(&w->lock);
	more = w->n_queued >= w->n_idle && w->n_thread < w->n_max;
	rsb_mutex_unlock(&w->lock);
	if (more) {
		r = rsb_thread_start(w->name, work, w, &w->threads[w->n_thread]);
		if (r == 0)
			w->n_thread++;
		else if (w->n_thread == 0)
			return r;
	}
	rsb_mutex_lock(&w->lock);
	rsb_list_append(&w->queue, &rq->link);
	w->n_queued++;
	rsb_cond_signal(&w->filled);
	rsb_mutex_unlock(&w->lock);
	return 0;
}
