/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "tests/unit/unit.h"
#include "util/queue.h"
#include "util/thread.h"

#define N_PRODUCER 4
#define N_ITEM 5000

static int items[N_PRODUCER][N_ITEM];

START_TEST(keeps_order_and_refuses_when_full)
{
	RSB_CLEANUP(rsb_queue_freep) struct rsb_queue *queue = NULL;
	int round;

	ck_assert_int_eq(rsb_queue_new(3, &queue), 0);
	for (round = 0; round < 5; round++) {
		ck_assert_int_eq(rsb_queue_push(queue, &items[0][0]), 0);
		ck_assert_int_eq(rsb_queue_push(queue, &items[0][1]), 0);
		ck_assert_int_eq(rsb_queue_push(queue, &items[0][2]), 0);
		ck_assert_int_eq(rsb_queue_push(queue, &items[0][3]), -EAGAIN);
		ck_assert_uint_eq(rsb_queue_len(queue), 3);
		ck_assert_ptr_eq(rsb_queue_pop(queue), &items[0][0]);
		ck_assert_ptr_eq(rsb_queue_try_pop(queue), &items[0][1]);
		ck_assert_ptr_eq(rsb_queue_pop(queue), &items[0][2]);
		ck_assert_ptr_null(rsb_queue_try_pop(queue));
	}
}
END_TEST

START_TEST(drains_after_close)
{
	RSB_CLEANUP(rsb_queue_freep) struct rsb_queue *queue = NULL;

	ck_assert_int_eq(rsb_queue_new(3, &queue), 0);
	ck_assert_int_eq(rsb_queue_push(queue, &items[0][0]), 0);
	rsb_queue_close(queue);
	ck_assert_int_eq(rsb_queue_push(queue, &items[0][1]), -EPIPE);
	ck_assert_ptr_eq(rsb_queue_pop(queue), &items[0][0]);
	ck_assert_ptr_null(rsb_queue_pop(queue));
	ck_assert_ptr_null(rsb_queue_pop(queue));
}
END_TEST

START_TEST(refuses_sizes_that_make_no_sense)
{
	struct rsb_queue *queue = NULL;

	ck_assert_int_eq(rsb_queue_new(0, &queue), -EINVAL);
	ck_assert_int_eq(rsb_queue_new(SIZE_MAX / 2, &queue), -EINVAL);
	ck_assert_ptr_null(queue);
	rsb_queue_free(NULL);
}
END_TEST

struct producer {
	struct rsb_queue *queue;
	int id;
	pthread_t thread;
};

static void *
produce(void *arg)
{
	struct producer *p = arg;
	int i;

	for (i = 0; i < N_ITEM; i++) {
		items[p->id][i] = p->id * N_ITEM + i;
		while (rsb_queue_push(p->queue, &items[p->id][i]) == -EAGAIN)
			(void)sched_yield();
	}
	return NULL;
}

START_TEST(carries_all_items_of_many_threads_in_their_order)
{
	RSB_CLEANUP(rsb_queue_freep) struct rsb_queue *queue = NULL;
	struct producer producers[N_PRODUCER];
	int next[N_PRODUCER] = { 0 };
	const int *item;
	int i;

	ck_assert_int_eq(rsb_queue_new(16, &queue), 0);
	for (i = 0; i < N_PRODUCER; i++) {
		producers[i] = (struct producer){ .queue = queue, .id = i };
		ck_assert_int_eq(
			rsb_thread_start("producer", produce, &producers[i], &producers[i].thread),
			0);
	}
	for (i = 0; i < N_PRODUCER * N_ITEM; i++) {
		item = rsb_queue_pop(queue);
		if (*item % N_ITEM != next[*item / N_ITEM]++)
			ck_abort_msg("item %d came out of order", *item);
	}
	for (i = 0; i < N_PRODUCER; i++)
		ck_assert_int_eq(pthread_join(producers[i].thread, NULL), 0);
	ck_assert_uint_eq(rsb_queue_len(queue), 0);
}
END_TEST

static void *
pop_until_closed(void *arg)
{
	struct rsb_queue *queue = arg;

	while (rsb_queue_pop(queue))
		;
	return NULL;
}

START_TEST(wakes_all_who_wait_when_it_closes)
{
	RSB_CLEANUP(rsb_queue_freep) struct rsb_queue *queue = NULL;
	pthread_t threads[3];
	int i;

	ck_assert_int_eq(rsb_queue_new(3, &queue), 0);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(
			rsb_thread_start("consumer", pop_until_closed, queue, &threads[i]), 0);
	ck_assert_int_eq(rsb_queue_push(queue, &items[0][0]), 0);
	rsb_queue_close(queue);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		keeps_order_and_refuses_when_full,
		drains_after_close,
		refuses_sizes_that_make_no_sense,
		carries_all_items_of_many_threads_in_their_order,
		wakes_all_who_wait_when_it_closes,
	};

	return unit_run("queue", tests, RSB_ARRAY_SIZE(tests));
}
