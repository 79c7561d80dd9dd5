/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/journal-file.h"
#include "tests/unit/desk.h"

#define N_DONE 1200u /* more than there are slots */

static struct rsb_journal_file *
map_file(struct desk *desk)
{
	int fd = open(desk->path, O_RDWR | O_CLOEXEC);
	void *map = mmap(NULL, RSB_JOURNAL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	ck_assert_ptr_ne(map, MAP_FAILED);
	(void)close(fd);
	return map;
}

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

#define USED_SIZE (RSB_JOURNAL_HEAD_SIZE + sizeof(((struct rsb_journal_file *)NULL)->slots[0]))
#define HEAD_WORDS (offsetof(struct rsb_journal_head, parts[2]) / sizeof(uint64_t))
#define SLOT_WORDS (sizeof(struct rsb_journal_slot) / sizeof(uint64_t))
#define REPLY_WORD (offsetof(struct rsb_journal_slot, reply) / sizeof(uint64_t))
#define PAGE_WORDS (RSB_JOURNAL_HEAD_SIZE / sizeof(uint64_t))

/* The head with two of its parts, and some of the slots and of what is in them. */
static bool
is_tried(size_t word)
{
	size_t slot = (word - PAGE_WORDS) / SLOT_WORDS;

	if (word < PAGE_WORDS)
		return word < HEAD_WORDS;
	if ((word - PAGE_WORDS) % SLOT_WORDS >= REPLY_WORD)
		return word % 4999 == 0;
	return slot == 0 || slot % 389 == 0;
}

START_TEST(believes_no_word_that_does_not_fit)
{
	/* The rest is zero, and is so again when all is void. */
	static uint64_t used[USED_SIZE / sizeof(uint64_t)];
	uint64_t *map;
	struct desk desk;

	desk_init(&desk);
	desk_mutate(desk_new_part(&desk, "one"), 1, N_DONE - 1);
	desk_reopen(&desk);
	desk_begin(desk_find(&desk, "one"), N_DONE);
	rsb_journal_close(desk.journal);
	map = (void *)map_file(&desk);
	memcpy(used, map, sizeof(used));
	for (size_t i = 0; i < RSB_ARRAY_SIZE(used); i++) {
		const uint64_t others[] = { 0, ~map[i], map[i] + 1, map[i] - 1, map[i] ^ 256 };

		for (size_t k = 0; is_tried(i) && k < RSB_ARRAY_SIZE(others); k++) {
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

/* ---- one field ---- */

enum field {
	MAGIC,
	SIZE,
	DEVICE,
	INODE,
	BIRTH,
	BOOT,
	SANDBOX_LOST,
	SANDBOX_LONG,
	SANDBOX_OTHER,
	OWNER_STATE,
	OWNER_LONG_CLIENT,
	OWNER_LONG_SESSION,
	OWNER_OTHER,
	INCARNATION_BOTH,
	BEGUN_AHEAD,
	BEGUN_BEHIND,
	SLOT_ELSEWHERE,
	SLOT_OTHER_NUMBER,
	SLOT_OTHER_CALL,
	SLOT_OTHER_OP,
	SLOT_LONG,
	SLOT_SHORT,
	SLOT_COMMIT,
	SLOT_UNUSED_COMMIT,
	N_VOID, /* by those above all is; by those below nothing but the field itself */
	INCARNATION_ONE = N_VOID,
	SLOT_NOT_ENDED,
	PART_GONE,
	N_FIELD,
};

static void
damage_head(struct rsb_journal_head *head, unsigned int field)
{
	switch (field) {
	case MAGIC:
		head->site.magic++;
		break;
	case SIZE:
		head->site.size--;
		break;
	case DEVICE:
		head->site.dev++;
		break;
	case INODE:
		head->site.ino++;
		break;
	case BIRTH:
		head->site.btime_nsec ^= 1;
		break;
	case BOOT:
		head->site.boot_id[0] ^= 1;
		break;
	case SANDBOX_LOST:
		head->sandbox_state = 0;
		break;
	case SANDBOX_LONG:
		head->sandbox_size = UINT64_MAX;
		break;
	default:
		head->sandbox[0] ^= 1;
		break;
	}
}

/* As if somebody had made the owner so. */
static void
own_again(struct rsb_journal_part_head *part)
{
	part->state = rsb_journal_digest(&part->owner, sizeof(part->owner));
}

static void
damage_part(struct rsb_journal_part_head *part, unsigned int field)
{
	switch (field) {
	case OWNER_STATE:
		part->state++;
		break;
	case OWNER_LONG_CLIENT:
		part->owner.client_size = RSB_JOURNAL_ID_MAX + 1;
		own_again(part);
		break;
	case OWNER_LONG_SESSION:
		part->owner.session_size = UINT64_MAX;
		own_again(part);
		break;
	case OWNER_OTHER:
		part->owner.session[0] ^= 1;
		break;
	case INCARNATION_BOTH:
		part->incarnation[0].value++;
		part->incarnation[1].digest++;
		break;
	case INCARNATION_ONE:
		part->incarnation[1].value = UINT64_MAX;
		break;
	case BEGUN_AHEAD:
		part->begun++;
		break;
	case BEGUN_BEHIND:
		part->begun--;
		break;
	default:
		part->state = 0;
		break;
	}
}

static void
damage_slot(struct rsb_journal_slot *slots, unsigned int field)
{
	struct rsb_journal_slot *slot = &slots[3];

	switch (field) {
	case SLOT_ELSEWHERE:
		slot->fifo++;
		slot->commit = rsb_journal_slot_digest(slot);
		break;
	case SLOT_OTHER_NUMBER:
		slot->fifo += RSB_JOURNAL_SLOTS;
		break;
	case SLOT_OTHER_CALL:
		slot->call++;
		break;
	case SLOT_OTHER_OP:
		slot->op ^= UINT32_MAX;
		break;
	case SLOT_LONG:
		slot->size = UINT32_MAX;
		break;
	case SLOT_SHORT:
		slot->size--;
		break;
	case SLOT_COMMIT:
		slot->commit ^= 1;
		break;
	case SLOT_NOT_ENDED:
		slot->commit = 0;
		break;
	default:
		slots[RSB_JOURNAL_SLOTS - 1].commit = 1;
		break;
	}
}

START_TEST(knows_each_bad_field)
{
	for (unsigned int field = 0; field < N_FIELD; field++) {
		struct rsb_journal_file *file;
		struct rsb_journal_part *part;
		struct desk desk;

		desk_init(&desk);
		rsb_journal_set_sandbox(desk.journal, rsb_bytes_str("box"));
		part = desk_new_part(&desk, "one");
		rsb_journal_set_incarnation(part, 7);
		desk_mutate(part, 1, 9);
		file = map_file(&desk);
		rsb_journal_close(desk.journal);
		if (field <= SANDBOX_OTHER)
			damage_head(&file->head, field);
		else if (field <= BEGUN_BEHIND || field == INCARNATION_ONE || field == PART_GONE)
			damage_part(&file->head.parts[0], field);
		else
			damage_slot(file->slots[0], field);
		(void)munmap(file, RSB_JOURNAL_SIZE);
		desk_open(&desk);
		part = desk_find(&desk, "one");
		ck_assert_msg((part != NULL) == (field >= N_VOID && field != PART_GONE), "field %u",
			field);
		for (uint64_t fifo = 1; part && fifo <= 9; fifo++)
			ck_assert_int_eq(
				desk_recall(part, fifo), field != SLOT_NOT_ENDED || fifo != 3);
		if (part)
			ck_assert_uint_eq(
				rsb_journal_incarnation(part), field == INCARNATION_ONE ? 0 : 7);
		/* It serves as a new one. */
		desk_mutate(desk_new_part(&desk, "two"), 1, 3);
		desk_reopen(&desk);
		ck_assert_int_eq(desk_recall(desk_find(&desk, "two"), 3), 1);
		desk_done(&desk);
	}
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
		map = (void *)map_file(&desk);
		for (int i = 0; i < n; i++)
			map[draw(&seed, 1u << (8 + draw(&seed, 16)))] = (uint8_t)draw(&seed, 256);
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
		knows_each_bad_field,
		survives_any_damage,
		tells_the_truth_of_a_killed_process,
	};

	return unit_run("journal-damage", tests, RSB_ARRAY_SIZE(tests));
}
