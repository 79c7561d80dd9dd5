/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/desk.h"

static void *
map_file(struct desk *desk)
{
	int fd = open(desk->path, O_RDWR | O_CLOEXEC);
	void *map = mmap(NULL, RSB_JOURNAL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	ck_assert_ptr_ne(map, MAP_FAILED);
	(void)close(fd);
	return map;
}

#define SLOT_WORDS 48
#define SLOT_HEAD 12 /* words; the heads of a slot and of a part */
#define PAGE_WORDS (4096 / 8)
#define HEAD_WORDS 40 /* of them in use */
#define PART_WORDS ((RSB_JOURNAL_SIZE / 8 - PAGE_WORDS) / RSB_JOURNAL_PARTS)
#define N_DONE 200u /* more than there are places */

/*
 * Whatever is in it, a mutation that was begun is never taken for one that was not, and no call
 * gets the reply of another: or all of it is void.
 */
static void
check_damaged(struct desk *desk)
{
	struct rsb_journal_part *part;

	desk_open(desk);
	part = desk_find(desk, "one");
	if (part) {
		ck_assert_uint_ge(rsb_journal_begun(part), N_DONE);
		for (uint64_t fifo = 1; fifo <= N_DONE + 2; fifo++)
			(void)desk_recall(part, fifo);
	}
	rsb_journal_close(desk->journal);
}

START_TEST(believes_no_word_that_does_not_fit)
{
	/* The rest is zero, and is so again when all is void. */
	static uint64_t used[PAGE_WORDS + PART_WORDS];
	uint64_t *map;
	struct desk desk;

	desk_init(&desk);
	desk_mutate(desk_new_part(&desk, "one"), 1, N_DONE - 1);
	desk_reopen(&desk);
	desk_begin(desk_find(&desk, "one"), N_DONE);
	rsb_journal_close(desk.journal);
	map = map_file(&desk);
	memcpy(used, map, sizeof(used));
	for (size_t i = 0; i < PAGE_WORDS + PART_WORDS; i++) {
		const uint64_t others[] = { 0, ~map[i], map[i] + 1, map[i] - 1, map[i] ^ 256 };
		bool is_reply = i >= PAGE_WORDS && (i - PAGE_WORDS) % SLOT_WORDS >= SLOT_HEAD;

		/* All of the two heads, and some of the slots and of what is in them. */
		if (i >= HEAD_WORDS && i < PAGE_WORDS)
			continue;
		if (is_reply ? i % 197
			     : i > PAGE_WORDS + SLOT_WORDS && (i - PAGE_WORDS) / SLOT_WORDS % 13)
			continue;
		for (size_t k = 0; k < RSB_ARRAY_SIZE(others); k++) {
			map[i] = others[k];
			check_damaged(&desk);
			memcpy(map, used, sizeof(used));
		}
	}
	(void)munmap(map, RSB_JOURNAL_SIZE);
	desk_open(&desk);
	desk_done(&desk);
}
END_TEST

/* Noise of any size, and a file that was cut. */
static unsigned int
draw(unsigned int *seed, unsigned int n)
{
	return (unsigned int)rand_r(seed) % n;
}

START_TEST(survives_any_damage)
{
	unsigned int seed = 5;
	struct desk desk;

	desk_init(&desk);
	for (int round = 0; round < 100; round++) {
		uint8_t *map;
		int n = 1 << draw(&seed, 16);

		desk_mutate(desk_new_part(&desk, "one"), 1, N_DONE);
		rsb_journal_close(desk.journal);
		map = map_file(&desk);
		for (int i = 0; i < n; i++)
			map[draw(&seed, 1u << (8 + draw(&seed, 13)))] = (uint8_t)draw(&seed, 256);
		(void)munmap(map, RSB_JOURNAL_SIZE);
		if (draw(&seed, 8) == 0)
			ck_assert_int_eq(truncate(desk.path, draw(&seed, RSB_JOURNAL_SIZE)), 0);
		desk_open(&desk);
		for (unsigned int i = 0; i < 3; i++) {
			const struct rsb_journal_part *part = desk_find(&desk, "one");

			if (part)
				for (uint64_t fifo = 1; fifo <= N_DONE; fifo++)
					(void)desk_recall(part, fifo);
		}
		/* It can be written to again. */
		rsb_journal_forget_all(desk.journal);
	}
	desk_done(&desk);
}
END_TEST

/* ---- killed wherever it is ---- */

/* What the child has done, in memory that outlives it. */
struct truth {
	uint64_t beginning; /* stored before it begins */
	uint64_t begun;
	uint64_t ended;
};

static rsb_noreturn void
mutate_on(struct desk *desk, struct truth *truth)
{
	struct rsb_journal_part *part;

	desk_open(desk);
	part = desk_find(desk, "one");
	for (uint64_t fifo = rsb_journal_begun(part) + 1;; fifo++) {
		__atomic_store_n(&truth->beginning, fifo, __ATOMIC_SEQ_CST);
		desk_begin(part, fifo);
		__atomic_store_n(&truth->begun, fifo, __ATOMIC_SEQ_CST);
		desk_end(part, fifo);
		__atomic_store_n(&truth->ended, fifo, __ATOMIC_SEQ_CST);
	}
}

START_TEST(tells_the_truth_of_a_killed_process)
{
	struct truth *truth = mmap(
		NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rsb_journal_part *part;
	struct desk desk;

	ck_assert_ptr_ne(truth, MAP_FAILED);
	desk_init(&desk);
	(void)desk_new_part(&desk, "one");
	rsb_journal_close(desk.journal);
	for (int round = 0; round < 100; round++) {
		uint64_t before = truth->ended;
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			mutate_on(&desk, truth);
		while (__atomic_load_n(&truth->ended, __ATOMIC_SEQ_CST) < before + 10)
			(void)usleep(50);
		(void)usleep((unsigned int)round % 97);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		desk_open(&desk);
		part = desk_find(&desk, "one");
		ck_assert_ptr_nonnull(part);
		ck_assert_uint_ge(rsb_journal_begun(part), truth->begun);
		ck_assert_uint_le(rsb_journal_begun(part), truth->beginning);
		for (uint64_t i = 0; i < RSB_JOURNAL_SLOTS - 1 && truth->ended - i > before; i++)
			ck_assert_int_eq(desk_recall(part, truth->ended - i), 1);
		if (truth->begun > truth->ended)
			(void)desk_recall(part, truth->begun); /* either, but its own */
		truth->ended = rsb_journal_begun(part);
		rsb_journal_close(desk.journal);
	}
	desk_open(&desk);
	desk_done(&desk);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		believes_no_word_that_does_not_fit,
		survives_any_damage,
		tells_the_truth_of_a_killed_process,
	};

	return unit_run("journal-damage", tests, RSB_ARRAY_SIZE(tests));
}
