/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuse/shared.h"
#include "tests/unit/unit.h"

static bool
is_there(const struct rsb_shared *s, uint64_t unique)
{
	for (uint32_t i = 0; i < RSB_SHARED_FLIGHT_MAX; i++) {
		if (s->flights[i].unique == unique)
			return true;
	}
	return false;
}

START_TEST(a_slot_comes_back_with_another_generation)
{
	struct rsb_shared *s;
	uint32_t a;
	uint32_t b;

	ck_assert_int_eq(rsb_shared_new(&s), 0);
	ck_assert_uint_eq(s->nodes[1].id, 1);
	ck_assert_int_eq(rsb_shared_node_new(s, &a), 0);
	ck_assert_uint_eq(a, 2);
	ck_assert_uint_eq(s->nodes[a].generation, 1);
	s->nodes[a].n_kernel = 7;
	rsb_shared_node_free(s, a);
	ck_assert_int_eq(rsb_shared_node_new(s, &b), 0);
	ck_assert_uint_eq(a, b);
	ck_assert_uint_eq(s->nodes[b].generation, 2);
	ck_assert_uint_eq(s->nodes[b].n_kernel, 0);
	rsb_shared_free(s);
}
END_TEST

START_TEST(a_used_up_slot_stays_unused)
{
	struct rsb_shared *s;
	uint32_t a;
	uint32_t b;

	ck_assert_int_eq(rsb_shared_new(&s), 0);
	ck_assert_int_eq(rsb_shared_node_new(s, &a), 0);
	s->nodes[a].generation = UINT32_MAX;
	rsb_shared_node_free(s, a);
	ck_assert_int_eq(rsb_shared_node_new(s, &b), 0);
	ck_assert_uint_ne(a, b);
	rsb_shared_free(s);
}
END_TEST

START_TEST(remembers_requests_until_they_are_answered)
{
	struct rsb_shared_flight f = { .unique = 0 };
	struct rsb_shared *s;

	ck_assert_int_eq(rsb_shared_new(&s), 0);
	/* All want the same place. */
	for (uint64_t i = 1; i <= 100; i++) {
		f.unique = i * 2 * RSB_SHARED_FLIGHT_MAX;
		ck_assert_int_eq(rsb_shared_flight_begin(s, &f), 0);
	}
	for (uint64_t i = 1; i <= 100; i += 2)
		rsb_shared_flight_end(s, i * 2 * RSB_SHARED_FLIGHT_MAX);
	rsb_shared_flight_end(s, 12345);
	ck_assert_uint_eq(s->head.n_flight, 50);
	for (uint64_t i = 1; i <= 100; i++)
		ck_assert_int_eq(is_there(s, i * 2 * RSB_SHARED_FLIGHT_MAX), i % 2 == 0);
	for (uint64_t i = 2; i <= 100; i += 2)
		rsb_shared_flight_end(s, i * 2 * RSB_SHARED_FLIGHT_MAX);
	ck_assert_uint_eq(s->head.n_flight, 0);
	rsb_shared_free(s);
}
END_TEST

START_TEST(is_full_before_probing_never_ends)
{
	struct rsb_shared_flight f = { .unique = 2 };
	struct rsb_shared *s;
	uint32_t n = 0;

	ck_assert_int_eq(rsb_shared_new(&s), 0);
	while (rsb_shared_flight_begin(s, &f) == 0) {
		f.unique += 2;
		n++;
	}
	ck_assert_uint_eq(n, RSB_SHARED_FLIGHT_MAX / 8 * 7);
	rsb_shared_flight_end(s, 2 * n + 100);
	rsb_shared_free(s);
}
END_TEST

START_TEST(is_seen_by_another_process)
{
	struct rsb_shared_flight f = { .unique = 42 };
	struct rsb_shared *s;
	pid_t pid;

	ck_assert_int_eq(rsb_shared_new(&s), 0);
	pid = fork();
	if (pid == 0)
		_exit(rsb_shared_flight_begin(s, &f) == 0 ? 0 : 1);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert(is_there(s, 42));
	rsb_shared_free(s);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_slot_comes_back_with_another_generation,
		a_used_up_slot_stays_unused,
		remembers_requests_until_they_are_answered,
		is_full_before_probing_never_ends,
		is_seen_by_another_process,
	};

	return unit_run("mount-shared", tests, RSB_ARRAY_SIZE(tests));
}
