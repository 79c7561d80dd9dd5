/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/journal.h"
#include "tests/unit/unit.h"
#include "util/clock.h"

#define BOOT "421ae615-5bc9-48f8-a711-6735eed8605e"
#define EPOCH UINT64_C(0x1234567800000000)

struct desk {
	char dir[64];
	char path[96];
	int root_fd;
	struct rsb_journal *journal;
};

static void
open_desk(struct desk *desk)
{
	ck_assert_int_eq(rsb_journal_open(desk->path, BOOT, desk->root_fd, &desk->journal), 0);
}

static void
desk_init(struct desk *desk)
{
	(void)strcpy(desk->dir, "/tmp/rsb-journal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(desk->dir));
	(void)snprintf(desk->path, sizeof(desk->path), "%s/journal", desk->dir);
	desk->root_fd = open("/tmp", O_PATH | O_CLOEXEC);
	open_desk(desk);
}

/* What another process does after this one was killed: nothing is said to the file. */
static void
reopen(struct desk *desk)
{
	rsb_journal_close(desk->journal);
	open_desk(desk);
}

static void
desk_done(struct desk *desk)
{
	rsb_journal_close(desk->journal);
	(void)close(desk->root_fd);
	unit_remove_tree(desk->dir);
}

static struct rsb_journal_session
session(const char *id)
{
	return (struct rsb_journal_session){
		.client = rsb_bytes_str("client"),
		.id = rsb_bytes_str(id),
	};
}

static struct rsb_journal_part *
new_part(struct desk *desk, const char *id)
{
	const struct rsb_journal_session whose = session(id);
	struct rsb_journal_part *part = rsb_journal_new_part(desk->journal, &whose, EPOCH);

	ck_assert_ptr_nonnull(part);
	rsb_journal_hold(part, true);
	return part;
}

static struct rsb_journal_part *
find(struct desk *desk, const char *id)
{
	const struct rsb_journal_session whose = session(id);

	return rsb_journal_find(desk->journal, &whose);
}

/* Calls have the number of their mutation and 1000. */
static struct rsb_journal_call
call_of(uint64_t fifo)
{
	return (struct rsb_journal_call){ .fifo = fifo, .id = fifo + 1000, .op = 16 };
}

static void
begin(struct rsb_journal_part *part, uint64_t fifo)
{
	const struct rsb_journal_call call = call_of(fifo);

	rsb_journal_begin(part, &call);
}

static void
end(struct rsb_journal_part *part, uint64_t fifo)
{
	char reply[32];

	(void)snprintf(reply, sizeof(reply), "reply %u", (unsigned int)fifo);
	rsb_journal_end(part, fifo, rsb_bytes_str(reply));
}

static void
mutate(struct rsb_journal_part *part, uint64_t first, uint64_t last)
{
	for (uint64_t fifo = first; fifo <= last; fifo++) {
		begin(part, fifo);
		end(part, fifo);
	}
}

/* 1: its reply; 0: nobody knows; fails the test on anything else. */
static int
recall(const struct rsb_journal_part *part, uint64_t fifo)
{
	const struct rsb_journal_call call = call_of(fifo);
	char expected[32];
	struct rsb_buf reply;
	int r;

	rsb_buf_init(&reply, 1024);
	r = rsb_journal_recall(part, &call, &reply);
	ck_assert(r == 0 || r == -ENODATA);
	if (r == 0) {
		(void)snprintf(expected, sizeof(expected), "reply %u", (unsigned int)fifo);
		ck_assert_uint_eq(rsb_buf_len(&reply), strlen(expected));
		ck_assert_mem_eq(rsb_buf_head(&reply), expected, strlen(expected));
	}
	rsb_buf_done(&reply);
	return r == 0;
}

START_TEST(remembers_what_was_begun_and_ended)
{
	struct rsb_journal_part *part;
	struct desk desk;

	desk_init(&desk);
	part = new_part(&desk, "one");
	mutate(part, 1, 5);
	begin(part, 6);
	reopen(&desk);
	part = find(&desk, "one");
	ck_assert_ptr_nonnull(part);
	ck_assert_ptr_null(find(&desk, "two"));
	ck_assert_uint_eq(rsb_journal_begun(part), 6);
	for (uint64_t fifo = 1; fifo <= 5; fifo++)
		ck_assert_int_eq(recall(part, fifo), 1);
	ck_assert_int_eq(recall(part, 6), 0);
	ck_assert_int_eq(recall(part, 7), 0);
	/* The same number of another call is another one. */
	struct rsb_journal_call other = call_of(3);
	struct rsb_buf reply;
	rsb_buf_init(&reply, 1024);
	other.id++;
	ck_assert_int_eq(rsb_journal_recall(part, &other, &reply), -ENODATA);
	rsb_buf_done(&reply);
	desk_done(&desk);
}
END_TEST

START_TEST(forgets_the_oldest_replies_and_no_number)
{
	const uint64_t n = 3 * RSB_JOURNAL_SLOTS + 7;
	struct rsb_journal_part *part;
	struct desk desk;

	desk_init(&desk);
	mutate(new_part(&desk, "one"), 1, n);
	reopen(&desk);
	part = find(&desk, "one");
	ck_assert_uint_eq(rsb_journal_begun(part), n);
	for (uint64_t fifo = 1; fifo <= n; fifo++)
		ck_assert_int_eq(recall(part, fifo), fifo > n - RSB_JOURNAL_SLOTS);
	desk_done(&desk);
}
END_TEST

START_TEST(keeps_no_reply_that_is_too_long)
{
	uint8_t reply[RSB_JOURNAL_REPLY_MAX + 1] = { 1 };
	struct rsb_journal_part *part;
	struct rsb_journal_call call = call_of(1);
	struct rsb_buf got;
	struct desk desk;

	desk_init(&desk);
	part = new_part(&desk, "one");
	begin(part, 1);
	rsb_journal_end(part, 1, (struct rsb_bytes){ reply, sizeof(reply) - 1 });
	begin(part, 2);
	rsb_journal_end(part, 2, (struct rsb_bytes){ reply, sizeof(reply) });
	reopen(&desk);
	part = find(&desk, "one");
	rsb_buf_init(&got, 1024);
	ck_assert_int_eq(rsb_journal_recall(part, &call, &got), 0);
	ck_assert_uint_eq(rsb_buf_len(&got), RSB_JOURNAL_REPLY_MAX);
	rsb_buf_done(&got);
	ck_assert_uint_eq(rsb_journal_begun(part), 2);
	ck_assert_int_eq(recall(part, 2), 0);
	desk_done(&desk);
}
END_TEST

START_TEST(keeps_sessions_apart)
{
	struct desk desk;
	char id[2] = "a";

	desk_init(&desk);
	for (unsigned int i = 0; i < RSB_JOURNAL_PARTS; i++, id[0]++)
		mutate(new_part(&desk, id), 1, i + 1);
	const struct rsb_journal_session more = session("more");
	ck_assert_ptr_null(rsb_journal_new_part(desk.journal, &more, EPOCH));
	/* Nobody finds what this process uses. */
	ck_assert_ptr_null(find(&desk, "c"));
	reopen(&desk);
	id[0] = 'a';
	for (unsigned int i = 0; i < RSB_JOURNAL_PARTS; i++, id[0]++)
		ck_assert_uint_eq(rsb_journal_begun(find(&desk, id)), i + 1);
	/* One that nobody came back for makes room. */
	rsb_journal_hold(find(&desk, "a"), true);
	(void)new_part(&desk, "more");
	rsb_journal_forget(find(&desk, "b"));
	ck_assert_ptr_null(find(&desk, "b"));
	reopen(&desk);
	ck_assert_ptr_nonnull(find(&desk, "a"));
	ck_assert_ptr_nonnull(find(&desk, "more"));
	ck_assert_ptr_null(find(&desk, "b"));
	desk_done(&desk);
}
END_TEST

START_TEST(knows_its_epochs)
{
	struct rsb_journal_part *part;
	struct desk desk;

	desk_init(&desk);
	part = new_part(&desk, "one");
	ck_assert_uint_eq(rsb_journal_epoch(part), EPOCH);
	rsb_journal_set_epoch(part, EPOCH, EPOCH + 1);
	rsb_journal_set_incarnation(part, 7);
	reopen(&desk);
	part = find(&desk, "one");
	ck_assert_uint_eq(rsb_journal_epoch(part), EPOCH + 1);
	ck_assert_uint_eq(rsb_journal_epoch_before(part), EPOCH);
	ck_assert_uint_eq(rsb_journal_incarnation(part), 7);
	begin(part, 1);
	ck_assert_uint_eq(rsb_journal_epoch_before(part), EPOCH + 1);
	desk_done(&desk);
}
END_TEST

START_TEST(knows_its_sandbox)
{
	struct desk desk;

	desk_init(&desk);
	ck_assert_uint_eq(rsb_journal_sandbox(desk.journal).size, 0);
	rsb_journal_set_sandbox(desk.journal, rsb_bytes_str("box"));
	reopen(&desk);
	ck_assert_uint_eq(rsb_journal_sandbox(desk.journal).size, 3);
	ck_assert_mem_eq(rsb_journal_sandbox(desk.journal).data, "box", 3);
	desk_done(&desk);
}
END_TEST

START_TEST(is_of_one_boot_and_one_workspace)
{
	int other_fd = open("/", O_PATH | O_CLOEXEC);
	struct desk desk;

	desk_init(&desk);
	mutate(new_part(&desk, "one"), 1, 3);
	rsb_journal_close(desk.journal);
	ck_assert_int_eq(rsb_journal_open(desk.path, "another", desk.root_fd, &desk.journal), 0);
	ck_assert_ptr_null(find(&desk, "one"));
	reopen(&desk);
	mutate(new_part(&desk, "one"), 1, 3);
	rsb_journal_close(desk.journal);
	ck_assert_int_eq(rsb_journal_open(desk.path, BOOT, other_fd, &desk.journal), 0);
	ck_assert_ptr_null(find(&desk, "one"));
	rsb_journal_close(desk.journal);
	/* Which boot this is has to be known. */
	ck_assert_int_eq(rsb_journal_open(desk.path, "", desk.root_fd, &desk.journal), -EINVAL);
	open_desk(&desk);
	(void)close(other_fd);
	desk_done(&desk);
}
END_TEST

static int
try_open(struct desk *desk)
{
	struct rsb_journal *journal;
	int r = rsb_journal_open(desk->path, BOOT, desk->root_fd, &journal);

	if (r == 0)
		rsb_journal_close(journal);
	return r;
}

START_TEST(takes_no_file_of_others)
{
	char other[128];
	struct desk desk;

	desk_init(&desk);
	rsb_journal_close(desk.journal);
	desk.journal = NULL;
	(void)snprintf(other, sizeof(other), "%s/other", desk.dir);
	/* A link, even to a file that would do. */
	ck_assert_int_eq(rename(desk.path, other), 0);
	ck_assert_int_eq(symlink(other, desk.path), 0);
	ck_assert_int_eq(try_open(&desk), -EPERM);
	ck_assert_int_eq(unlink(desk.path), 0);
	/* A second name. */
	ck_assert_int_eq(link(other, desk.path), 0);
	ck_assert_int_eq(try_open(&desk), -EPERM);
	ck_assert_int_eq(unlink(other), 0);
	ck_assert_int_eq(try_open(&desk), 0);
	/* Others may read it. */
	ck_assert_int_eq(chmod(desk.path, 0644), 0);
	ck_assert_int_eq(try_open(&desk), -EPERM);
	ck_assert_int_eq(unlink(desk.path), 0);
	/* No file: this must not wait for somebody at the other end. */
	ck_assert_int_eq(mkfifo(desk.path, 0600), 0);
	ck_assert_int_eq(try_open(&desk), -EPERM);
	ck_assert_int_eq(unlink(desk.path), 0);
	ck_assert_int_eq(mkdir(desk.path, 0700), 0);
	ck_assert_int_eq(try_open(&desk), -EISDIR);
	(void)snprintf(desk.path, sizeof(desk.path), "%s/not/there", desk.dir);
	ck_assert_int_eq(try_open(&desk), -ENOENT);
	desk_done(&desk);
}
END_TEST

START_TEST(is_one_process_alone)
{
	struct desk desk;
	int status;
	pid_t pid;

	desk_init(&desk);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(try_open(&desk) == -EBUSY ? 0 : 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	desk_done(&desk);
}
END_TEST

/* ---- damage ---- */

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
#define N_DONE 200u /* more than there are places */

/*
 * Whatever is in it, a mutation that was begun is never taken for one that was not, and no call
 * gets the reply of another: or all of it is void.
 */
static void
check_damaged(struct desk *desk)
{
	struct rsb_journal_part *part;

	open_desk(desk);
	part = find(desk, "one");
	if (part) {
		ck_assert_uint_ge(rsb_journal_begun(part), N_DONE);
		for (uint64_t fifo = 1; fifo <= N_DONE + 2; fifo++)
			(void)recall(part, fifo);
	}
	rsb_journal_close(desk->journal);
}

START_TEST(believes_no_word_that_does_not_fit)
{
	static uint64_t whole[RSB_JOURNAL_SIZE / 8];
	size_t n_word = PAGE_WORDS + (RSB_JOURNAL_SIZE / 8 - PAGE_WORDS) / RSB_JOURNAL_PARTS;
	uint64_t *map;
	struct desk desk;

	desk_init(&desk);
	mutate(new_part(&desk, "one"), 1, N_DONE - 1);
	reopen(&desk);
	begin(find(&desk, "one"), N_DONE);
	rsb_journal_close(desk.journal);
	map = map_file(&desk);
	memcpy(whole, map, sizeof(whole));
	for (size_t i = 0; i < n_word; i++) {
		const uint64_t others[] = { 0, ~map[i], map[i] + 1, map[i] - 1, map[i] ^ 256 };
		bool is_reply = i >= PAGE_WORDS && (i - PAGE_WORDS) % SLOT_WORDS >= SLOT_HEAD;

		/* All of the heads, some of the slots and of the replies. */
		if (is_reply ? i % 97
			     : i > PAGE_WORDS + SLOT_WORDS && (i - PAGE_WORDS) / SLOT_WORDS % 7)
			continue;
		for (size_t k = 0; k < RSB_ARRAY_SIZE(others); k++) {
			map[i] = others[k];
			check_damaged(&desk);
			memcpy(map, whole, sizeof(whole));
		}
	}
	(void)munmap(map, RSB_JOURNAL_SIZE);
	open_desk(&desk);
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
	for (int round = 0; round < 400; round++) {
		uint8_t *map;
		int n = 1 << draw(&seed, 16);

		mutate(new_part(&desk, "one"), 1, N_DONE);
		rsb_journal_close(desk.journal);
		map = map_file(&desk);
		for (int i = 0; i < n; i++)
			map[draw(&seed, 1u << (8 + draw(&seed, 13)))] = (uint8_t)draw(&seed, 256);
		(void)munmap(map, RSB_JOURNAL_SIZE);
		if (draw(&seed, 8) == 0)
			ck_assert_int_eq(truncate(desk.path, draw(&seed, RSB_JOURNAL_SIZE)), 0);
		open_desk(&desk);
		for (unsigned int i = 0; i < 3; i++) {
			const struct rsb_journal_part *part = find(&desk, "one");

			if (part)
				for (uint64_t fifo = 1; fifo <= N_DONE; fifo++)
					(void)recall(part, fifo);
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

	open_desk(desk);
	part = find(desk, "one");
	for (uint64_t fifo = rsb_journal_begun(part) + 1;; fifo++) {
		__atomic_store_n(&truth->beginning, fifo, __ATOMIC_SEQ_CST);
		begin(part, fifo);
		__atomic_store_n(&truth->begun, fifo, __ATOMIC_SEQ_CST);
		end(part, fifo);
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
	(void)new_part(&desk, "one");
	rsb_journal_close(desk.journal);
	for (int round = 0; round < 300; round++) {
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
		open_desk(&desk);
		part = find(&desk, "one");
		ck_assert_ptr_nonnull(part);
		ck_assert_uint_ge(rsb_journal_begun(part), truth->begun);
		ck_assert_uint_le(rsb_journal_begun(part), truth->beginning);
		for (uint64_t i = 0; i < RSB_JOURNAL_SLOTS - 1 && truth->ended - i > before; i++)
			ck_assert_int_eq(recall(part, truth->ended - i), 1);
		if (truth->begun > truth->ended)
			(void)recall(part, truth->begun); /* either, but its own */
		truth->ended = rsb_journal_begun(part);
		rsb_journal_close(desk.journal);
	}
	open_desk(&desk);
	desk_done(&desk);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		remembers_what_was_begun_and_ended,
		forgets_the_oldest_replies_and_no_number,
		keeps_no_reply_that_is_too_long,
		keeps_sessions_apart,
		knows_its_epochs,
		knows_its_sandbox,
		is_of_one_boot_and_one_workspace,
		takes_no_file_of_others,
		is_one_process_alone,
		believes_no_word_that_does_not_fit,
		survives_any_damage,
		tells_the_truth_of_a_killed_process,
	};

	return unit_run("journal", tests, RSB_ARRAY_SIZE(tests));
}
