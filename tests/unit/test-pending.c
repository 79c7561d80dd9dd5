/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "link/pending.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"

#define N 500u

static struct rsb_pending_call *
add(struct rsb_pending *pending, uint64_t id, uint64_t deadline_ns)
{
	struct rsb_pending_call *call = rsb_new(struct rsb_pending_call);

	ck_assert_ptr_nonnull(call);
	call->id = id;
	call->deadline_ns = deadline_ns;
	ck_assert_int_eq(rsb_pending_add(pending, call), 0);
	return call;
}

START_TEST(gives_each_call_out_once)
{
	struct rsb_pending pending;
	struct rsb_pending_call *call;

	rsb_pending_init(&pending, 10);
	call = add(&pending, 7, 0);
	ck_assert_ptr_eq(rsb_pending_get(&pending, 7), call);
	ck_assert_ptr_null(rsb_pending_get(&pending, 8));
	ck_assert_ptr_eq(rsb_pending_take(&pending, 7), call);
	ck_assert_ptr_null(rsb_pending_take(&pending, 7));
	free(call);
	rsb_pending_done(&pending);
}
END_TEST

START_TEST(takes_no_more_than_its_maximum)
{
	struct rsb_pending_call extra = { .id = 3 };
	struct rsb_pending pending;

	rsb_pending_init(&pending, 2);
	(void)add(&pending, 1, 0);
	(void)add(&pending, 2, 5);
	ck_assert_int_eq(rsb_pending_add(&pending, &extra), -EAGAIN);
	free(rsb_pending_take(&pending, 1));
	ck_assert_int_eq(rsb_pending_add(&pending, &extra), 0);
	ck_assert_ptr_eq(rsb_pending_take(&pending, 3), &extra);
	free(rsb_pending_take(&pending, 2));
	rsb_pending_done(&pending);
}
END_TEST

/* Any order of adding and of taking out of the middle. */
START_TEST(hands_out_late_calls_by_their_deadline)
{
	struct rsb_pending_call *call;
	struct rsb_pending pending;
	uint64_t last_ns = 0;
	unsigned int n = 0;
	uint64_t i;

	rsb_pending_init(&pending, N);
	for (i = 0; i < N; i++)
		(void)add(&pending, i + 1, i % 5 == 0 ? 0 : 1 + i * 7919 % 1000);
	for (i = 3; i < N; i += 11)
		free(rsb_pending_take(&pending, i + 1));
	ck_assert_ptr_null(rsb_pending_late(&pending, rsb_pending_deadline(&pending) - 1));
	while (rsb_pending_deadline(&pending) != 0) {
		call = rsb_pending_late(&pending, rsb_pending_deadline(&pending));
		ck_assert_ptr_nonnull(call);
		ck_assert_uint_ge(call->deadline_ns, last_ns);
		last_ns = call->deadline_ns;
		free(rsb_pending_take(&pending, call->id));
		n++;
	}
	ck_assert_uint_gt(n, N / 2);
	for (i = 0; i < N; i++)
		free(rsb_pending_take(&pending, i + 1));
	rsb_pending_done(&pending);
}
END_TEST

START_TEST(gives_up_all_at_once)
{
	struct rsb_pending pending;
	struct rsb_list list, *pos, *tmp;
	unsigned int n = 0;
	uint64_t i;

	rsb_pending_init(&pending, N);
	rsb_list_init(&list);
	for (i = 0; i < N; i++)
		(void)add(&pending, i + 1, i);
	rsb_pending_take_all(&pending, &list);
	ck_assert_uint_eq(rsb_pending_deadline(&pending), 0);
	rsb_list_for_each_safe (pos, tmp, &list) {
		free(rsb_list_entry(pos, struct rsb_pending_call, node));
		n++;
	}
	ck_assert_uint_eq(n, N);
	rsb_pending_done(&pending);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		gives_each_call_out_once,
		takes_no_more_than_its_maximum,
		hands_out_late_calls_by_their_deadline,
		gives_up_all_at_once,
	};

	return unit_run("pending", tests, RSB_ARRAY_SIZE(tests));
}
