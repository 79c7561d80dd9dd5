/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sidecar/journal.h"
#include "tests/unit/far.h"

static bool
is_there(const struct far *far, const char *name)
{
	return faccessat(far->config.root_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
check_text(struct far *far, const char *name, const char *expected)
{
	char *text = far_read(far, name);

	ck_assert_ptr_nonnull(text);
	ck_assert_str_eq(text, expected);
	free(text);
}

START_TEST(goes_on_when_it_was_idle)
{
	struct far *far = far_new(true);
	const struct rsb_read_req read = { .fh = 10, .size = 100 };
	struct rsb_read_rep rep;

	ck_assert_int_eq(far_reply(far, far_create(far, "log", 10), NULL), 0);
	ck_assert_int_eq(far_reply(far, far_append(far, 10, "one\n"), NULL), 0);
	for (unsigned int i = 1; i <= 3; i++) {
		far_kill(far);
		far_until(far, far->n_anew == i);
	}
	far_until(far, far->calls[far->wait_for].done);
	ck_assert_int_eq(far_reply(far, far_append(far, 10, "two\n"), NULL), 0);
	ck_assert_int_eq(far_reply(far, far_call(far, RSB_OP_read, &read, NULL), &rep), 0);
	ck_assert_uint_eq(rep.data.size, 8);
	ck_assert_int_eq(far_reply(far, far_release(far, 10), NULL), 0);
	check_text(far, "log", "one\ntwo\n");
	ck_assert_uint_eq(far->n_lost, 0);
	far_free(far);
}
END_TEST

START_TEST(says_that_an_end_is_unknown)
{
	static const char *const names[] = { "stall before", "stall after" };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++) {
		struct far *far = far_new(true);
		uint64_t call, next;

		ck_assert_int_eq(far_reply(far, far_mkdir(far, "first", 10), NULL), 0);
		call = far_mkdir(far, names[i], 11);
		next = far_mkdir(far, "next", 12);
		far_until_stalled(far);
		far_kill(far);
		ck_assert_int_eq(far_reply(far, call, NULL), -ENOTCONN);
		/* It was not done again, and what never began is done. */
		ck_assert(is_there(far, names[i]) == (i == 1));
		ck_assert_int_eq(far_reply(far, next, NULL), 0);
		ck_assert(is_there(far, "next"));
		ck_assert_int_eq(far_reply(far, far_mkdir(far, "first", 13), NULL), -EEXIST);
		far_free(far);
	}
}
END_TEST

START_TEST(knows_of_the_writes_of_a_file_which_were_begun)
{
	struct far *far = far_new(true);
	uint64_t first, second, third;

	ck_assert_int_eq(far_reply(far, far_create(far, "log", 10), NULL), 0);
	ck_assert_int_eq(far_reply(far, far_append(far, 10, "one\n"), NULL), 0);
	first = far_append(far, 10, "stall after one\n");
	second = far_append(far, 10, "stall after two\n");
	third = far_append(far, 10, "two\n");
	far_until_stalled(far);
	far_kill(far);
	/* And once more, in the next one, before the first was heard of. */
	far_until(far, far->n_anew == 1);
	far_send(far);
	far_wait_stalled(far);
	far_kill(far);
	ck_assert_int_eq(far_reply(far, first, NULL), -ENOTCONN);
	ck_assert_int_eq(far_reply(far, second, NULL), -ENOTCONN);
	ck_assert_int_eq(far_reply(far, third, NULL), 0);
	ck_assert_int_eq(far_reply(far, far_append(far, 10, "three\n"), NULL), 0);
	check_text(far, "log", "one\nstall after one\nstall after two\ntwo\nthree\n");
	far_free(far);
}
END_TEST

/* What was answered, and the answer did not arrive. */
START_TEST(answers_as_the_process_before)
{
	static const int expected[] = { 0, 0, 0, -EEXIST, 0, 0, 0, 0, -ENOENT };
	struct far *far = far_new(true);
	uint64_t calls[RSB_ARRAY_SIZE(expected)];
	struct rsb_write_rep write;

	far_until(far, far->welcomed);
	calls[0] = far_create(far, "a", 10);
	calls[1] = far_append(far, 10, "text");
	calls[2] = far_rename(far, "a", "b");
	calls[3] = far_mkdir(far, "b", 11);
	calls[4] = far_append(far, 10, " and more");
	calls[5] = far_create(far, "c", 12);
	calls[6] = far_release(far, 12);
	calls[7] = far_rename(far, "c", "d");
	calls[8] = far_rename(far, "c", "e");
	(void)far_mkdir(far, "stall before", 13);
	far_send(far);
	far_wait_stalled(far);
	far_kill(far);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(expected); i++)
		ck_assert_int_eq(far_reply(far, calls[i], NULL), expected[i]);
	ck_assert_int_eq(far_reply(far, calls[4], &write), 0);
	ck_assert_uint_eq(write.offset, 4);
	/* The file is open again, whatever it is called now; the released one is not. */
	ck_assert_int_eq(far_reply(far, far_append(far, 10, "."), NULL), 0);
	ck_assert_int_eq(far_reply(far, far_append(far, 12, "."), NULL), -EBADF);
	check_text(far, "b", "text and more.");
	check_text(far, "d", "");
	far_free(far);
}
END_TEST

START_TEST(loses_the_session_without_a_journal)
{
	struct far *far = far_new(false);

	ck_assert_int_eq(far_reply(far, far_mkdir(far, "first", 10), NULL), 0);
	far_kill(far);
	far_until(far, far->n_lost);
	ck_assert_uint_eq(far->n_anew, 0);
	far_free(far);
}
END_TEST

START_TEST(finds_what_was_moved_meanwhile)
{
	struct far *far = far_new(true);
	const struct rsb_getattr_req dir = { .node = { .id = 10 } },
				     file = { .node = { .id = 11 } };
	struct far_node *node;
	uint64_t call;

	ck_assert_int_eq(far_reply(far, far_mkdir(far, "dir", 10), NULL), 0);
	ck_assert_int_eq(far_reply(far, far_create(far, "file", 11), NULL), 0);
	/* The reply to the renaming does not come. */
	call = far_rename(far, "dir", "moved");
	(void)far_mkdir(far, "stall before", 13);
	far_send(far);
	far_wait_stalled(far);
	far_kill(far);
	ck_assert_int_eq(far_reply(far, call, NULL), 0);
	ck_assert_int_eq(far_reply(far, far_call(far, RSB_OP_getattr, &dir, NULL), NULL), 0);
	node = far_node(far, 10);
	ck_assert_str_eq(node->name, "moved");
	/* One that somebody else moved while nobody looked is gone, and never another one. */
	ck_assert_int_eq(far_reply(far, far_release(far, 11), NULL), 0);
	ck_assert_int_eq(renameat(far->config.root_fd, "file", far->config.root_fd, "away"), 0);
	ck_assert_int_eq(mkdirat(far->config.root_fd, "file", 0755), 0);
	far_kill(far);
	ck_assert_int_eq(far_reply(far, far_mkdir(far, "after", 12), NULL), 0);
	ck_assert_int_eq(far_reply(far, far_call(far, RSB_OP_getattr, &file, NULL), NULL), -ESTALE);
	far_free(far);
}
END_TEST

/* ---- more at a time than there are slots ---- */

#define N_FLOOD (RSB_JOURNAL_SLOTS + 300u)

static size_t
count_lines(struct far *far)
{
	char *text = far_read(far, "log");
	size_t n = 0;

	ck_assert_ptr_nonnull(text);
	for (const char *c = text; *c; c++)
		n += *c == '\n';
	free(text);
	return n;
}

static void
wait_for_lines(struct far *far, size_t n)
{
	uint64_t deadline_ns = rsb_now_ns() + FAR_WAIT_NS;

	while (count_lines(far) < n) {
		ck_assert(rsb_now_ns() < deadline_ns);
		(void)poll(NULL, 0, 1);
	}
}

/* The lines that were written are there once and in their order; others may be. */
static size_t
check_lines(struct far *far, const uint64_t *calls, size_t n_call)
{
	char *text = far_read(far, "log");
	const char *at = text;
	size_t n_unknown = 0;
	char line[16];

	ck_assert_ptr_nonnull(text);
	for (size_t i = 0; i < n_call; i++) {
		int r = far_reply(far, calls[i], NULL);
		size_t n = (size_t)snprintf(line, sizeof(line), "%zu\n", i);
		bool here = strncmp(at, line, n) == 0;

		ck_assert_msg(r == 0 || r == -ENOTCONN, "line %zu: %d", i, r);
		ck_assert_msg(here || r == -ENOTCONN, "line %zu is lost in %s", i, text);
		n_unknown += r < 0;
		if (here)
			at += n;
	}
	ck_assert_str_eq(at, "");
	free(text);
	return n_unknown;
}

START_TEST(answers_all_that_was_done_however_much_over_kills_in_a_row)
{
	static uint64_t calls[N_FLOOD];
	struct far *far = far_new(true);
	char line[16];

	ck_assert_int_eq(far_reply(far, far_create(far, "log", 10), NULL), 0);
	for (size_t i = 0; i < N_FLOOD; i++) {
		(void)snprintf(line, sizeof(line), "%zu\n", i);
		calls[i] = far_append(far, 10, line);
	}
	/* The host hears nothing; it is not to do more than it can remember. */
	far_send(far);
	wait_for_lines(far, RSB_JOURNAL_SLOTS - 1);
	(void)poll(NULL, 0, 50);
	far_kill(far);
	/* Killed again among the answers of before, then where it goes on behind some of them. */
	far_until(far, far->n_anew == 1);
	far_send(far);
	far_kill(far);
	far_until(far, far->calls[calls[300]].done);
	far_send(far);
	wait_for_lines(far, RSB_JOURNAL_SLOTS + 100);
	far_kill(far);
	for (size_t i = 0; i < N_FLOOD; i++)
		(void)far_reply(far, calls[i], NULL);
	ck_assert_uint_le(check_lines(far, calls, N_FLOOD), 1);
	ck_assert_uint_eq(far->n_lost, 0);
	far_free(far);
}
END_TEST

/* ---- everything at random ---- */

#define N_LINE 120

struct story {
	struct far *far;
	unsigned int seed;
	uint64_t lines[N_LINE];
	uint64_t dirs[N_LINE];
	uint64_t creates[N_LINE];
	uint64_t writes[N_LINE];
	uint64_t releases[N_LINE];
};

static unsigned int
draw(struct story *story, unsigned int n)
{
	return (unsigned int)rand_r(&story->seed) % n;
}

static void
disturb(struct story *story)
{
	struct far *far = story->far;

	far->kill_delay_ms = (int)draw(story, 4);
	if (!far->kill_after)
		far->kill_after = 1 + draw(story, 25);
	switch (draw(story, 20)) {
	case 0:
		far_cut(far);
		break;
	case 1:
		far_crash(far);
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		far_step(far, 0);
		break;
	default:
		break;
	}
}

static void
tell(struct story *story)
{
	struct far *far = story->far;
	char name[16];

	for (uint64_t i = 0; i < N_LINE; i++) {
		uint64_t id = 100 + 3 * i;

		(void)snprintf(name, sizeof(name), "%u\n", (unsigned int)i);
		story->lines[i] = far_append(far, 10, name);
		disturb(story);
		if (i % 4)
			continue;
		(void)snprintf(name, sizeof(name), "d%u", (unsigned int)i);
		story->dirs[i] = far_mkdir(far, name, id);
		(void)snprintf(name, sizeof(name), "f%u", (unsigned int)i);
		story->creates[i] = far_create(far, name, id + 1);
		disturb(story);
		story->writes[i] = far_append(far, id + 1, "text");
		story->releases[i] = far_release(far, id + 1);
		disturb(story);
	}
}

static void
check_file(struct story *story, unsigned int i)
{
	struct far *far = story->far;
	int made = far_reply(far, story->creates[i], NULL);
	int wrote = far_reply(far, story->writes[i], NULL);
	int closed = far_reply(far, story->releases[i], NULL);
	char name[16], *text;

	ck_assert_msg(made == 0 || made == -ENOTCONN, "file %u: %d", i, made);
	/* Whose making is unknown is not open. */
	ck_assert_msg(wrote == 0 || wrote == -ENOTCONN || (made < 0 && wrote == -EBADF),
		"write %u: %d", i, wrote);
	ck_assert_msg(closed == 0 || closed == -ENOTCONN || (made < 0 && closed == -EBADF),
		"release %u: %d", i, closed);
	(void)snprintf(name, sizeof(name), "f%u", i);
	text = far_read(far, name);
	if (made == 0)
		ck_assert_ptr_nonnull(text);
	if (wrote == 0)
		ck_assert_str_eq(text, "text");
	else if (text)
		ck_assert(!text[0] || strcmp(text, "text") == 0);
	free(text);
}

static void
check_dirs(struct story *story)
{
	char name[16];

	for (unsigned int i = 0; i < N_LINE; i += 4) {
		int r = far_reply(story->far, story->dirs[i], NULL);

		/* EEXIST would be a second time. */
		ck_assert_msg(r == 0 || r == -ENOTCONN, "directory %u: %d", i, r);
		(void)snprintf(name, sizeof(name), "d%u", i);
		ck_assert(r < 0 || is_there(story->far, name));
		check_file(story, i);
	}
}

START_TEST(executes_once_over_kills_of_the_sidecar)
{
	unsigned int n_kill = 0;

	for (unsigned int seed = 1; seed <= 8; seed++) {
		struct story story = { .far = far_new(true), .seed = seed };
		struct far *far = story.far;

		ck_assert_int_eq(far_reply(far, far_create(far, "log", 10), NULL), 0);
		tell(&story);
		for (uint64_t id = 1; id <= far->n_call; id++) {
			(void)far_reply(far, id, NULL);
			if (!far->kill_after)
				far->kill_after = 1 + draw(&story, 25);
		}
		(void)check_lines(far, story.lines, N_LINE);
		check_dirs(&story);
		ck_assert_uint_eq(far->n_lost, 0);
		n_kill += far->n_kill;
		far_free(far);
	}
	ck_assert_uint_gt(n_kill, 8);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		goes_on_when_it_was_idle,
		says_that_an_end_is_unknown,
		knows_of_the_writes_of_a_file_which_were_begun,
		answers_as_the_process_before,
		loses_the_session_without_a_journal,
		finds_what_was_moved_meanwhile,
		answers_all_that_was_done_however_much_over_kills_in_a_row,
		executes_once_over_kills_of_the_sidecar,
	};

	return unit_run("restart", tests, RSB_ARRAY_SIZE(tests));
}
