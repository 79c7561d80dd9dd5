/* SPDX-License-Identifier: MIT */
#include "link/call.h"

#include "util/thread.h"

struct waiter {
	struct rsb_mutex lock;
	struct rsb_cond cond;
	bool done; /* {lock} */
	int r;     /* {lock} */
	rsb_copy_fn copy;
	void *arg;
};

static void
on_end(void *arg, int r, const void *rep)
{
	struct waiter *waiter = arg;

	if (rep && waiter->copy)
		waiter->copy(waiter->arg, rep);
	rsb_mutex_lock(&waiter->lock);
	waiter->done = true;
	waiter->r = r;
	/* with the lock held: the waiter may be gone as soon as it can have it */
	rsb_cond_signal(&waiter->cond);
	rsb_mutex_unlock(&waiter->lock);
}

int
rsb_link_call_wait(struct rsb_link *link, uint32_t op, const void *req,
	const struct rsb_call_opts *opts, rsb_copy_fn copy, void *arg)
{
	struct waiter waiter = { .copy = copy, .arg = arg };
	int r;

	rsb_mutex_init(&waiter.lock);
	rsb_cond_init(&waiter.cond);
	r = rsb_link_call(link, op, req, opts, (struct rsb_call_done){ on_end, &waiter }, NULL);
	if (r == 0) {
		rsb_mutex_lock(&waiter.lock);
		while (!waiter.done)
			rsb_cond_wait(&waiter.cond, &waiter.lock);
		r = waiter.r;
		rsb_mutex_unlock(&waiter.lock);
	}
	rsb_cond_done(&waiter.cond);
	rsb_mutex_done(&waiter.lock);
	return r;
}
