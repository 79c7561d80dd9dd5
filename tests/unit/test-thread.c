/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>

#include "tests/unit/unit.h"
#include "util/clock.h"
#include "util/thread.h"

struct shared {
	struct rsb_mutex lock;
	struct rsb_cond changed;
	int count; /* {lock} */
};

static void
init(struct shared *shared)
{
	rsb_mutex_init(&shared->lock);
	rsb_cond_init(&shared->changed);
	shared->count = 0;
}

static void
done(struct shared *shared)
{
	rsb_cond_done(&shared->changed);
	rsb_mutex_done(&shared->lock);
}

static void *
add_many(void *arg)
{
	struct shared *shared = arg;
	int i;

	for (i = 0; i < 10000; i++) {
		rsb_mutex_lock(&shared->lock);
		shared->count++;
		rsb_mutex_unlock(&shared->lock);
	}
	rsb_mutex_lock(&shared->lock);
	rsb_cond_broadcast(&shared->changed);
	rsb_mutex_unlock(&shared->lock);
	return NULL;
}

START_TEST(lets_one_thread_at_a_time_in)
{
	struct shared shared;
	pthread_t threads[3];
	int i;

	init(&shared);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(rsb_thread_start("adder", add_many, &shared, &threads[i]), 0);
	rsb_mutex_lock(&shared.lock);
	while (shared.count < 30000)
		rsb_cond_wait(&shared.changed, &shared.lock);
	rsb_mutex_unlock(&shared.lock);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_int_eq(shared.count, 30000);
	done(&shared);
}
END_TEST

START_TEST(waits_no_longer_than_its_deadline)
{
	uint64_t deadline_ns = rsb_now_ns() + 20 * RSB_NSEC_PER_MSEC;
	struct shared shared;
	int r = 0;

	init(&shared);
	rsb_mutex_lock(&shared.lock);
	while (r == 0)
		r = rsb_cond_wait_until(&shared.changed, &shared.lock, deadline_ns);
	ck_assert_int_eq(rsb_cond_wait_until(&shared.changed, &shared.lock, 1), -ETIMEDOUT);
	rsb_mutex_unlock(&shared.lock);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_uint_ge(rsb_now_ns(), deadline_ns);
	done(&shared);
}
END_TEST

static void *
set_and_signal(void *arg)
{
	struct shared *shared = arg;

	rsb_mutex_lock(&shared->lock);
	shared->count = 1;
	rsb_cond_signal(&shared->changed);
	rsb_mutex_unlock(&shared->lock);
	return NULL;
}

START_TEST(is_woken_before_its_deadline)
{
	uint64_t deadline_ns = rsb_now_ns() + 3600 * RSB_NSEC_PER_SEC;
	struct shared shared;
	pthread_t thread;

	init(&shared);
	ck_assert_int_eq(rsb_thread_start("signaller", set_and_signal, &shared, &thread), 0);
	rsb_mutex_lock(&shared.lock);
	while (shared.count == 0)
		ck_assert_int_eq(
			rsb_cond_wait_until(&shared.changed, &shared.lock, deadline_ns), 0);
	rsb_mutex_unlock(&shared.lock);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	done(&shared);
}
END_TEST

static void *
get_mask(void *arg)
{
	(void)pthread_sigmask(SIG_SETMASK, NULL, arg); /* cannot fail without a new mask */
	return NULL;
}

START_TEST(starts_threads_that_take_no_signals)
{
	sigset_t mask, ours;
	pthread_t thread;

	(void)sigemptyset(&mask);
	ck_assert_int_eq(rsb_thread_start("a name that is too long", get_mask, &mask, &thread), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(sigismember(&mask, SIGTERM), 1);
	ck_assert_int_eq(sigismember(&mask, SIGCHLD), 1);
	(void)get_mask(&ours);
	ck_assert_int_eq(sigismember(&ours, SIGTERM), 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		lets_one_thread_at_a_time_in,
		waits_no_longer_than_its_deadline,
		is_woken_before_its_deadline,
		starts_threads_that_take_no_signals,
	};

	return unit_run("thread", tests, RSB_ARRAY_SIZE(tests));
}
