/* SPDX-License-Identifier: MIT */
#include "util/thread.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

/* The wrappers themselves are where the analysis ends. */
#define UNCHECKED RSB_TS(no_thread_safety_analysis)

/* An error of a lock (deadlock, not the owner, destroyed while held) is a bug of ours. */
static void
must(int r)
{
	assert(r == 0);
	(void)r;
}

void
rsb_mutex_init(struct rsb_mutex *mutex)
{
	must(pthread_mutex_init(&mutex->m, NULL));
}

void
rsb_mutex_done(struct rsb_mutex *mutex)
{
	must(pthread_mutex_destroy(&mutex->m));
}

UNCHECKED void
rsb_mutex_lock(struct rsb_mutex *mutex)
{
	must(pthread_mutex_lock(&mutex->m));
}

UNCHECKED void
rsb_mutex_unlock(struct rsb_mutex *mutex)
{
	must(pthread_mutex_unlock(&mutex->m));
}

void
rsb_cond_init(struct rsb_cond *cond)
{
	pthread_condattr_t attr;

	must(pthread_condattr_init(&attr));
	must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
	must(pthread_cond_init(&cond->c, &attr));
	must(pthread_condattr_destroy(&attr));
}

void
rsb_cond_done(struct rsb_cond *cond)
{
	must(pthread_cond_destroy(&cond->c));
}

void
rsb_cond_signal(struct rsb_cond *cond)
{
	must(pthread_cond_signal(&cond->c));
}

void
rsb_cond_broadcast(struct rsb_cond *cond)
{
	must(pthread_cond_broadcast(&cond->c));
}

void
rsb_cond_wait(struct rsb_cond *cond, struct rsb_mutex *mutex)
{
	must(pthread_cond_wait(&cond->c, &mutex->m));
}

int
rsb_cond_wait_until(struct rsb_cond *cond, struct rsb_mutex *mutex, uint64_t deadline_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / RSB_NSEC_PER_SEC),
		.tv_nsec = (long)(deadline_ns % RSB_NSEC_PER_SEC),
	};
	int r = pthread_cond_timedwait(&cond->c, &mutex->m, &ts);

	if (r == ETIMEDOUT)
		return -ETIMEDOUT;
	must(r);
	return 0;
}

int
rsb_thread_start(const char *name, void *(*fn)(void *), void *arg, pthread_t *ret_thread)
{
	char short_name[16] = "";
	sigset_t all, old;
	pthread_t thread;
	int r;

	strncpy(short_name, name, sizeof(short_name) - 1);
	(void)sigfillset(&all);
	/* The new thread inherits the mask; signals are for main alone. */
	must(pthread_sigmask(SIG_SETMASK, &all, &old));
	r = pthread_create(&thread, NULL, fn, arg);
	must(pthread_sigmask(SIG_SETMASK, &old, NULL));
	if (r != 0)
		return -r;
	(void)pthread_setname_np(thread, short_name); /* for debuggers only */
	*ret_thread = thread;
	return 0;
}
