/* SPDX-License-Identifier: MIT */
#ifndef RSB_THREAD_H
#define RSB_THREAD_H

/*
 * A mutex that clang's -Wthread-safety understands, and a thread starter.
 * Members say their guard in a comment: {lock}, {io}, {const after open}.
 * No lock is held over I/O or a callback, and no second one is taken while one is held.
 */

#include <pthread.h>

#include "util/macro.h"

#if defined(__clang__)
#define RSB_TS(x) __attribute__((x))
#else
#define RSB_TS(x)
#endif

#define RSB_REQUIRES(lock) RSB_TS(requires_capability(lock))

struct RSB_TS(capability("mutex")) rsb_mutex {
	pthread_mutex_t m;
};

#define RSB_MUTEX_INITIALIZER                  \
	{                                      \
		.m = PTHREAD_MUTEX_INITIALIZER \
	}

void rsb_mutex_init(struct rsb_mutex *mutex);
void rsb_mutex_done(struct rsb_mutex *mutex);
void rsb_mutex_lock(struct rsb_mutex *mutex) RSB_TS(acquire_capability(*mutex));
void rsb_mutex_unlock(struct rsb_mutex *mutex) RSB_TS(release_capability(*mutex));

/* Condition variable on CLOCK_MONOTONIC. */
struct rsb_cond {
	pthread_cond_t c;
};

void rsb_cond_init(struct rsb_cond *cond);
void rsb_cond_done(struct rsb_cond *cond);
void rsb_cond_signal(struct rsb_cond *cond);
void rsb_cond_broadcast(struct rsb_cond *cond);
void rsb_cond_wait(struct rsb_cond *cond, struct rsb_mutex *mutex) RSB_REQUIRES(*mutex);
/* Returns 0, or -ETIMEDOUT at deadline_ns (monotonic, see util/clock.h). */
int rsb_cond_wait_until(struct rsb_cond *cond, struct rsb_mutex *mutex, uint64_t deadline_ns)
	RSB_REQUIRES(*mutex);

/* Starts fn(arg) on a new thread with all signals blocked. name: at most 15 bytes. */
rsb_nodiscard int rsb_thread_start(
	const char *name, void *(*fn)(void *), void *arg, pthread_t *ret_thread);

#endif
