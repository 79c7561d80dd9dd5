/* SPDX-License-Identifier: MIT */
#ifndef RSB_LOOP_H
#define RSB_LOOP_H

/*
 * One epoll loop: descriptors, timers and tasks posted from other threads. All calls but
 * rsb_loop_post() and rsb_loop_stop() belong to the thread that runs the loop. A callback may
 * delete any source or timer, its own included: deleted ones are released after the dispatch.
 * The clock is injected, so that tests move time; epoll_wait(2) is given the time to the next
 * timer.
 * In one round descriptors come first, then timers, then tasks; each kind only as far as it was due
 * when its turn came, so that none can hold up the others.
 */

#include <stdbool.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/macro.h"

struct rsb_loop;
struct rsb_source;
struct rsb_timer;

/* events: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR as of epoll_ctl(2). */
typedef void (*rsb_source_fn)(void *arg, uint32_t events);
typedef void (*rsb_timer_fn)(void *arg);

/* A task is embedded in its owner, so that posting cannot fail. */
struct rsb_task {
	struct rsb_task *next; /* {lock of the loop} */
	void (*fn)(struct rsb_task *task);
	bool posted; /* {lock of the loop} */
};

rsb_nodiscard int rsb_loop_new(const struct rsb_clock *clock, struct rsb_loop **ret_loop);
/*
 * Releases remaining sources and timers; descriptors stay the caller's, tasks that are posted do
 * not run. Not from a callback. NULL is fine.
 */
void rsb_loop_free(struct rsb_loop *loop);
RSB_DEFINE_CLEANUP(struct rsb_loop *, rsb_loop_free)
uint64_t rsb_loop_now(const struct rsb_loop *loop);

/*
 * fd is borrowed until rsb_source_del(), which comes before close(2). Level-triggered; EPOLLHUP and
 * EPOLLERR are reported even when events is 0.
 */
rsb_nodiscard int rsb_loop_add(struct rsb_loop *loop, int fd, uint32_t events, rsb_source_fn fn,
	void *arg, struct rsb_source **ret_source);
rsb_nodiscard int rsb_source_set(struct rsb_source *source, uint32_t events);
void rsb_source_del(struct rsb_source *source); /* NULL is fine */

rsb_nodiscard int rsb_timer_new(
	struct rsb_loop *loop, rsb_timer_fn fn, void *arg, struct rsb_timer **ret_timer);
/* Fires once at deadline_ns of the loop's clock; 0 disarms. */
void rsb_timer_set(struct rsb_timer *timer, uint64_t deadline_ns);
void rsb_timer_del(struct rsb_timer *timer); /* NULL is fine */

/*
 * Any thread: runs task->fn on the loop's thread, in order of posting. A task that is already
 * posted stays posted once. It is no longer posted when fn begins, which may post it again or free
 * it.
 */
void rsb_loop_post(struct rsb_loop *loop, struct rsb_task *task);
/* Takes a task back before its owner goes; harmless if it is not posted. */
void rsb_loop_unpost(struct rsb_loop *loop, struct rsb_task *task);

/* Until rsb_loop_stop(), also one that came before. 0 or the errno of epoll_wait(2). */
rsb_nodiscard int rsb_loop_run(struct rsb_loop *loop);
/* One round, waiting at most timeout_ms (-1: until something happens). */
rsb_nodiscard int rsb_loop_step(struct rsb_loop *loop, int timeout_ms);
/* Any thread. */
void rsb_loop_stop(struct rsb_loop *loop);

#endif
