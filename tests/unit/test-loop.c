/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "util/loop.h"
#include "util/thread.h"

/* What happened, as letters. */
static char history[256];
static size_t n_history;

/* Time that a test moves by hand. */
static uint64_t fake_now_ns;

static uint64_t
fake_now(rsb_unused void *arg)
{
	return fake_now_ns;
}

static struct rsb_loop *
new_loop(void)
{
	static const struct rsb_clock clock = { .now_ns = fake_now };
	struct rsb_loop *loop = NULL;

	fake_now_ns = 1000;
	n_history = 0;
	ck_assert_int_eq(rsb_loop_new(&clock, &loop), 0);
	return loop;
}

static void
add(char letter)
{
	ck_assert_uint_lt(n_history, sizeof(history) - 1);
	history[n_history++] = letter;
	history[n_history] = '\0';
}

static void
note(void *arg)
{
	add(*(char *)arg);
}

static char letter[] = "t";

static void
note_event(void *arg, rsb_unused uint32_t events)
{
	note(arg);
}

START_TEST(fires_timers_in_order_of_time)
{
	static char names[] = "abcdefgh";
	static const uint64_t at_ns[] = { 1700, 1300, 1500, 1100, 1800, 1200, 1600, 1400 };
	struct rsb_loop *loop = new_loop();
	struct rsb_timer *timers[8];
	size_t i;

	for (i = 0; i < 8; i++) {
		ck_assert_int_eq(rsb_timer_new(loop, note, &names[i], &timers[i]), 0);
		rsb_timer_set(timers[i], at_ns[i]);
	}
	rsb_timer_set(timers[2], 0);
	rsb_timer_set(timers[6], 1050);
	rsb_timer_del(timers[5]);
	ck_assert_int_eq(rsb_loop_step(loop, 0), 0);
	ck_assert_uint_eq(n_history, 0);
	fake_now_ns = 1300;
	ck_assert_int_eq(rsb_loop_step(loop, 0), 0);
	ck_assert_str_eq(history, "gdb");
	fake_now_ns = 5000;
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_str_eq(history, "gdbhae");
	ck_assert_int_eq(rsb_loop_step(loop, 0), 0);
	ck_assert_str_eq(history, "gdbhae");
	rsb_loop_free(loop);
}
END_TEST

static void
set_self_again(void *arg)
{
	add('x');
	rsb_timer_set(*(struct rsb_timer **)arg, 1);
}

static void
delete_self(void *arg)
{
	add('d');
	rsb_timer_del(*(struct rsb_timer **)arg);
}

START_TEST(lets_timers_set_and_delete_themselves)
{
	struct rsb_loop *loop = new_loop();
	struct rsb_timer *again, *gone;

	ck_assert_int_eq(rsb_timer_new(loop, set_self_again, &again, &again), 0);
	ck_assert_int_eq(rsb_timer_new(loop, delete_self, &gone, &gone), 0);
	rsb_timer_set(again, 1);
	rsb_timer_set(gone, 2);
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_str_eq(history, "xd");
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_str_eq(history, "xdxx");
	rsb_loop_free(loop);
}
END_TEST

START_TEST(agrees_with_a_sorted_model_of_timers)
{
	struct rsb_loop *loop = new_loop();
	struct rsb_timer *timers[100];
	uint64_t at_ns[100] = { 0 };
	uint32_t random = 1;
	size_t fired = 0;
	size_t want = 0;
	int i, j;

	for (i = 0; i < 100; i++)
		ck_assert_int_eq(rsb_timer_new(loop, note, letter, &timers[i]), 0);
	for (i = 0; i < 5000; i++) {
		random = random * 1664525 + 1013904223;
		j = (int)((random >> 8) % 100);
		at_ns[j] = random >> 28 ? fake_now_ns + (random >> 16) % 500 : 0;
		rsb_timer_set(timers[j], at_ns[j]);
		fake_now_ns += (random >> 24) % 8;
		for (want = 0, j = 0; j < 100; j++)
			if (at_ns[j] > 0 && at_ns[j] <= fake_now_ns) {
				at_ns[j] = 0;
				want++;
			}
		n_history = 0;
		if (rsb_loop_step(loop, 0) < 0 || n_history != want)
			ck_abort_msg("round %d: %zu fired, not %zu", i, n_history, want);
		fired += want;
	}
	ck_assert_uint_gt(fired, 1000);
	rsb_loop_free(loop);
}
END_TEST

START_TEST(reports_descriptors_as_asked)
{
	struct rsb_loop *loop = new_loop();
	struct rsb_source *source;
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(rsb_loop_add(loop, pair[0], EPOLLIN, note_event, letter, &source), 0);
	ck_assert_int_eq(rsb_loop_step(loop, 0), 0);
	ck_assert_uint_eq(n_history, 0);
	ck_assert_int_eq((int)write(pair[1], "x", 1), 1);
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_uint_eq(n_history, 1);
	ck_assert_int_eq(rsb_source_set(source, 0), 0);
	ck_assert_int_eq(rsb_loop_step(loop, 0), 0);
	ck_assert_uint_eq(n_history, 1);
	ck_assert_int_eq(rsb_source_set(source, EPOLLOUT), 0);
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_uint_eq(n_history, 2);
	rsb_source_del(source);
	rsb_source_del(NULL);
	ck_assert_int_eq(rsb_loop_step(loop, 0), 0);
	ck_assert_uint_eq(n_history, 2);
	ck_assert_int_eq(rsb_loop_add(loop, -1, EPOLLIN, note_event, NULL, &source), -EBADF);
	rsb_loop_free(loop);
	(void)close(pair[0]);
	(void)close(pair[1]);
}
END_TEST

struct pair_of_sources {
	struct rsb_source *sources[2];
	int n_call;
};

static void
delete_both(void *arg, rsb_unused uint32_t events)
{
	struct pair_of_sources *both = arg;

	both->n_call++;
	rsb_source_del(both->sources[0]);
	rsb_source_del(both->sources[1]);
}

START_TEST(calls_no_source_that_was_deleted_in_the_same_round)
{
	struct pair_of_sources both = { .n_call = 0 };
	struct rsb_loop *loop = new_loop();
	int pair[2];
	int i;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(
			rsb_loop_add(loop, pair[i], EPOLLOUT, delete_both, &both, &both.sources[i]),
			0);
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_int_eq(rsb_loop_step(loop, 0), 0);
	ck_assert_int_eq(both.n_call, 1);
	rsb_loop_free(loop);
	(void)close(pair[0]);
	(void)close(pair[1]);
}
END_TEST

struct job {
	struct rsb_task task;
	struct rsb_loop *loop;
	char name;
	int n_again;
};

static void
run_job(struct rsb_task *task)
{
	struct job *job = rsb_container_of(task, struct job, task);

	add(job->name);
	if (job->n_again > 0) {
		job->n_again--;
		rsb_loop_post(job->loop, task);
	}
}

START_TEST(runs_tasks_in_order_and_each_once)
{
	struct rsb_loop *loop = new_loop();
	struct job a = { { .fn = run_job }, loop, 'a', 0 };
	struct job b = { { .fn = run_job }, loop, 'b', 2 };
	struct job c = { { .fn = run_job }, loop, 'c', 0 };

	rsb_loop_post(loop, &a.task);
	rsb_loop_post(loop, &b.task);
	rsb_loop_post(loop, &a.task);
	rsb_loop_post(loop, &c.task);
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_str_eq(history, "abc");
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_str_eq(history, "abcbb");
	ck_assert_int_eq(rsb_loop_step(loop, 0), 0);
	ck_assert_str_eq(history, "abcbb");
	rsb_loop_free(loop);
}
END_TEST

START_TEST(takes_tasks_back)
{
	struct rsb_loop *loop = new_loop();
	struct job a = { { .fn = run_job }, loop, 'a', 0 };
	struct job b = { { .fn = run_job }, loop, 'b', 0 };
	struct job c = { { .fn = run_job }, loop, 'c', 0 };

	rsb_loop_unpost(loop, &a.task);
	rsb_loop_post(loop, &a.task);
	rsb_loop_post(loop, &b.task);
	rsb_loop_post(loop, &c.task);
	rsb_loop_unpost(loop, &b.task);
	rsb_loop_unpost(loop, &c.task);
	rsb_loop_post(loop, &b.task);
	rsb_loop_unpost(loop, &a.task);
	ck_assert_int_eq(rsb_loop_step(loop, 0), 0);
	ck_assert_str_eq(history, "b");
	rsb_loop_free(loop);
}
END_TEST

static void *
run_loop(void *arg)
{
	ck_assert_int_eq(rsb_loop_run(arg), 0);
	return NULL;
}

#define N_POST 20000

struct counter {
	struct rsb_task task;
	struct rsb_loop *loop;
	struct rsb_mutex lock;
	int n_want; /* {lock} */
	int n_done; /* {loop thread} */
};

static void
count(struct rsb_task *task)
{
	struct counter *counter = rsb_container_of(task, struct counter, task);

	rsb_mutex_lock(&counter->lock);
	counter->n_done += counter->n_want;
	counter->n_want = 0;
	rsb_mutex_unlock(&counter->lock);
	if (counter->n_done == N_POST)
		rsb_loop_stop(counter->loop);
}

struct again {
	struct rsb_task task;
	struct rsb_loop *loop;
};

static void
post_again(struct rsb_task *task)
{
	add('p');
	if (n_history < 3)
		rsb_loop_post(rsb_container_of(task, struct again, task)->loop, task);
}

/* It waits for events without end in between, unless it sees the task. */
START_TEST(finds_what_a_task_posts)
{
	struct again again = { .task = { .fn = post_again } };

	again.loop = new_loop();
	rsb_loop_post(again.loop, &again.task);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(rsb_loop_step(again.loop, -1), 0);
	ck_assert_str_eq(history, "ppp");
	rsb_loop_free(again.loop);
}
END_TEST

START_TEST(asks_the_kernel_only_for_what_changes)
{
	struct rsb_loop *loop = new_loop();
	struct rsb_source *source;
	int fd = eventfd(0, EFD_CLOEXEC);

	ck_assert_int_eq(rsb_loop_add(loop, fd, EPOLLIN, note_event, letter, &source), 0);
	(void)close(fd);
	ck_assert_int_eq(rsb_source_set(source, EPOLLIN), 0);
	ck_assert_int_eq(rsb_source_set(source, EPOLLIN | EPOLLOUT), -EBADF);
	rsb_source_del(source);
	rsb_loop_free(loop);
}
END_TEST

START_TEST(loses_no_post_from_another_thread)
{
	struct rsb_loop *loop = NULL;
	struct counter counter = { .task.fn = count };
	pthread_t thread;
	int i;

	ck_assert_int_eq(rsb_loop_new(rsb_clock_monotonic(), &loop), 0);
	counter.loop = loop;
	rsb_mutex_init(&counter.lock);
	ck_assert_int_eq(rsb_thread_start("loop", run_loop, loop, &thread), 0);
	for (i = 0; i < N_POST; i++) {
		rsb_mutex_lock(&counter.lock);
		counter.n_want++;
		rsb_mutex_unlock(&counter.lock);
		rsb_loop_post(loop, &counter.task);
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(counter.n_done, N_POST);
	rsb_mutex_done(&counter.lock);
	rsb_loop_free(loop);
}
END_TEST

START_TEST(stops_also_when_told_before)
{
	struct rsb_loop *loop = new_loop();

	rsb_loop_stop(loop);
	ck_assert_int_eq(rsb_loop_run(loop), 0);
	rsb_loop_stop(loop);
	ck_assert_int_eq(rsb_loop_run(loop), 0);
	rsb_loop_free(loop);
	rsb_loop_free(NULL);
}
END_TEST

START_TEST(waits_until_the_next_timer)
{
	struct rsb_loop *loop = NULL;
	struct rsb_timer *timer;
	uint64_t deadline_ns;

	n_history = 0;
	ck_assert_int_eq(rsb_loop_new(rsb_clock_monotonic(), &loop), 0);
	ck_assert_int_eq(rsb_timer_new(loop, note, letter, &timer), 0);
	deadline_ns = rsb_loop_now(loop) + 15 * RSB_NSEC_PER_MSEC + 1;
	rsb_timer_set(timer, deadline_ns);
	ck_assert_int_eq(rsb_loop_step(loop, -1), 0);
	ck_assert_uint_eq(n_history, 1);
	ck_assert_uint_ge(rsb_now_ns(), deadline_ns);
	rsb_loop_free(loop);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		fires_timers_in_order_of_time,
		lets_timers_set_and_delete_themselves,
		agrees_with_a_sorted_model_of_timers,
		reports_descriptors_as_asked,
		calls_no_source_that_was_deleted_in_the_same_round,
		runs_tasks_in_order_and_each_once,
		takes_tasks_back,
		finds_what_a_task_posts,
		asks_the_kernel_only_for_what_changes,
		loses_no_post_from_another_thread,
		stops_also_when_told_before,
		waits_until_the_next_timer,
	};

	return unit_run("loop", tests, RSB_ARRAY_SIZE(tests));
}
