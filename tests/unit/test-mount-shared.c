/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuse/shared.h"
#include "tests/unit/unit.h"

START_TEST(a_slot_comes_back_with_another_generation)
{
	struct rsb_shared *s;
	uint32_t a;
	uint32_t b;

	ck_assert_int_eq(rsb_shared_new(&s, NULL), 0);
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

	ck_assert_int_eq(rsb_shared_new(&s, NULL), 0);
	ck_assert_int_eq(rsb_shared_node_new(s, &a), 0);
	s->nodes[a].generation = UINT32_MAX;
	rsb_shared_node_free(s, a);
	ck_assert_int_eq(rsb_shared_node_new(s, &b), 0);
	ck_assert_uint_ne(a, b);
	rsb_shared_free(s);
}
END_TEST

START_TEST(a_node_counts_only_with_its_id)
{
	struct rsb_shared *s;
	uint32_t a;
	uint32_t b;

	ck_assert_int_eq(rsb_shared_new(&s, NULL), 0);
	ck_assert_int_eq(rsb_shared_node_new(s, &a), 0);
	s->nodes[a].id = 5;
	ck_assert_int_eq(rsb_shared_node_new(s, &b), 0);
	/* The process was killed before it had filled b, and its list of free ones is nonsense. */
	s->head.first_free = a;
	rsb_shared_recover_nodes(s);
	ck_assert_uint_eq(s->head.first_free, b);
	ck_assert_uint_eq(s->nodes[b].next_free, 0);
	rsb_shared_free(s);
}
END_TEST

START_TEST(is_seen_by_another_process)
{
	struct rsb_shared *s;
	struct rsb_shared *again;
	int status = 1;
	pid_t pid;
	int fd;

	ck_assert_int_eq(rsb_shared_new(&s, &fd), 0);
	pid = fork();
	if (pid == 0) {
		s->hand.unique = 42;
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_uint_eq(s->hand.unique, 42);
	ck_assert_int_eq(rsb_shared_map(fd, &again), 0);
	ck_assert_uint_eq(again->hand.unique, 42);
	rsb_shared_free(again);
	s->head.magic++;
	ck_assert_int_eq(rsb_shared_map(fd, &again), -EPROTONOSUPPORT);
	rsb_shared_free(s);
	(void)close(fd);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_slot_comes_back_with_another_generation,
		a_used_up_slot_stays_unused,
		a_node_counts_only_with_its_id,
		is_seen_by_another_process,
	};

	return unit_run("mount-shared", tests, RSB_ARRAY_SIZE(tests));
}
