/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/codec.h"
#include "proto/version.h"
#include "tests/unit/desk.h"

START_TEST(remembers_what_was_begun_and_ended)
{
	struct rsb_journal_part *part;
	struct desk desk;

	desk_init(&desk);
	part = desk_new_part(&desk, "one");
	desk_mutate(part, 1, 5);
	desk_begin(part, 6);
	desk_reopen(&desk);
	part = desk_find(&desk, "one");
	ck_assert_ptr_nonnull(part);
	ck_assert_ptr_null(desk_find(&desk, "two"));
	ck_assert_uint_eq(rsb_journal_begun(part), 6);
	for (uint64_t fifo = 1; fifo <= 5; fifo++)
		ck_assert_int_eq(desk_recall(part, fifo), 1);
	ck_assert_int_eq(desk_recall(part, 6), 0);
	ck_assert_int_eq(desk_recall(part, 7), 0);
	/* The same number of another call is another one. */
	struct rsb_journal_call other = desk_call(3);
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
	desk_mutate(desk_new_part(&desk, "one"), 1, n);
	desk_reopen(&desk);
	part = desk_find(&desk, "one");
	ck_assert_uint_eq(rsb_journal_begun(part), n);
	for (uint64_t fifo = 1; fifo <= n; fifo++)
		ck_assert_int_eq(desk_recall(part, fifo), fifo > n - RSB_JOURNAL_SLOTS);
	desk_done(&desk);
}
END_TEST

START_TEST(keeps_no_reply_that_is_too_long)
{
	uint8_t reply[RSB_JOURNAL_REPLY_MAX + 1] = { 1 };
	struct rsb_journal_part *part;
	struct rsb_journal_call call = desk_call(1);
	struct rsb_buf got;
	struct desk desk;

	desk_init(&desk);
	part = desk_new_part(&desk, "one");
	desk_begin(part, 1);
	rsb_journal_end(part, 1, (struct rsb_bytes){ reply, sizeof(reply) - 1 });
	desk_begin(part, 2);
	rsb_journal_end(part, 2, (struct rsb_bytes){ reply, sizeof(reply) });
	desk_reopen(&desk);
	part = desk_find(&desk, "one");
	rsb_buf_init(&got, 1024);
	ck_assert_int_eq(rsb_journal_recall(part, &call, &got), 0);
	ck_assert_uint_eq(rsb_buf_len(&got), RSB_JOURNAL_REPLY_MAX);
	rsb_buf_done(&got);
	ck_assert_uint_eq(rsb_journal_begun(part), 2);
	ck_assert_int_eq(desk_recall(part, 2), 0);
	desk_done(&desk);
}
END_TEST

/* What a system call can say of a file, at its longest. */
static struct rsb_attr
longest_attr(void)
{
	const struct rsb_time time = { .sec = UINT32_MAX, .nsec = 999999999 };

	return (struct rsb_attr){
		.ino = UINT64_MAX,
		.mode = UINT16_MAX,
		.nlink = UINT32_MAX,
		.uid = UINT32_MAX,
		.gid = UINT32_MAX,
		.rdev = UINT64_MAX,
		.size = INT64_MAX,
		.blocks = INT64_MAX,
		.blksize = UINT32_MAX,
		.atime = time,
		.mtime = time,
		.ctime = time,
		.btime = time,
	};
}

START_TEST(has_room_for_the_longest_reply)
{
	const struct rsb_rename_rep rename = {
		.attr = longest_attr(),
		.over_id = UINT64_MAX,
		.over = longest_attr(),
		.dir = longest_attr(),
		.newdir = longest_attr(),
	};
	struct rsb_buf reply;

	/* No other mutation says as much. */
	for (uint32_t op = 0; op <= RSB_OP_NUMBER_MAX; op++)
		if (rsb_ops[op].name && rsb_ops[op].flags & RSB_OP_WRITES)
			ck_assert_uint_le(
				rsb_codec_reply_max(op), rsb_codec_reply_max(RSB_OP_rename));
	rsb_buf_init(&reply, 4096);
	ck_assert_int_eq(
		rsb_codec_reply(RSB_OP_rename, UINT64_MAX, 0, &rename, RSB_PROTO_VERSION, &reply),
		0);
	ck_assert_uint_le(rsb_buf_len(&reply), RSB_JOURNAL_REPLY_MAX);
	rsb_buf_done(&reply);
}
END_TEST

START_TEST(keeps_sessions_apart)
{
	struct desk desk;
	char id[2] = "a";

	desk_init(&desk);
	for (unsigned int i = 0; i < RSB_JOURNAL_PARTS; i++, id[0]++)
		desk_mutate(desk_new_part(&desk, id), 1, i + 1);
	const struct rsb_journal_session more = desk_session("more");
	ck_assert_ptr_null(rsb_journal_new_part(desk.journal, &more, DESK_EPOCH));
	/* Nobody finds what this process uses. */
	ck_assert_ptr_null(desk_find(&desk, "c"));
	desk_reopen(&desk);
	id[0] = 'a';
	for (unsigned int i = 0; i < RSB_JOURNAL_PARTS; i++, id[0]++)
		ck_assert_uint_eq(rsb_journal_begun(desk_find(&desk, id)), i + 1);
	/* One that nobody came back for makes room. */
	rsb_journal_hold(desk_find(&desk, "a"), true);
	(void)desk_new_part(&desk, "more");
	rsb_journal_forget(desk_find(&desk, "b"));
	ck_assert_ptr_null(desk_find(&desk, "b"));
	desk_reopen(&desk);
	ck_assert_ptr_nonnull(desk_find(&desk, "a"));
	ck_assert_ptr_nonnull(desk_find(&desk, "more"));
	ck_assert_ptr_null(desk_find(&desk, "b"));
	desk_done(&desk);
}
END_TEST

START_TEST(knows_its_epochs)
{
	struct rsb_journal_part *part;
	struct desk desk;

	desk_init(&desk);
	part = desk_new_part(&desk, "one");
	ck_assert_uint_eq(rsb_journal_epoch(part), DESK_EPOCH);
	rsb_journal_set_epoch(part, DESK_EPOCH, DESK_EPOCH + 1);
	rsb_journal_set_incarnation(part, 7);
	desk_reopen(&desk);
	part = desk_find(&desk, "one");
	ck_assert_uint_eq(rsb_journal_epoch(part), DESK_EPOCH + 1);
	ck_assert_uint_eq(rsb_journal_epoch_before(part), DESK_EPOCH);
	ck_assert_uint_eq(rsb_journal_incarnation(part), 7);
	desk_begin(part, 1);
	ck_assert_uint_eq(rsb_journal_epoch_before(part), DESK_EPOCH + 1);
	desk_done(&desk);
}
END_TEST

START_TEST(knows_its_sandbox)
{
	struct desk desk;

	desk_init(&desk);
	ck_assert_uint_eq(rsb_journal_sandbox(desk.journal).size, 0);
	rsb_journal_set_sandbox(desk.journal, rsb_bytes_str("box"));
	desk_reopen(&desk);
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
	desk_mutate(desk_new_part(&desk, "one"), 1, 3);
	rsb_journal_close(desk.journal);
	ck_assert_int_eq(rsb_journal_open(desk.path, "another", desk.root_fd, &desk.journal), 0);
	ck_assert_ptr_null(desk_find(&desk, "one"));
	desk_reopen(&desk);
	desk_mutate(desk_new_part(&desk, "one"), 1, 3);
	rsb_journal_close(desk.journal);
	ck_assert_int_eq(rsb_journal_open(desk.path, DESK_BOOT, other_fd, &desk.journal), 0);
	ck_assert_ptr_null(desk_find(&desk, "one"));
	rsb_journal_close(desk.journal);
	/* Which boot this is has to be known. */
	ck_assert_int_eq(rsb_journal_open(desk.path, "", desk.root_fd, &desk.journal), -EINVAL);
	desk_open(&desk);
	(void)close(other_fd);
	desk_done(&desk);
}
END_TEST

static int
try_open(struct desk *desk)
{
	struct rsb_journal *journal;
	int r = rsb_journal_open(desk->path, DESK_BOOT, desk->root_fd, &journal);

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

int
main(void)
{
	const TTest *const tests[] = {
		remembers_what_was_begun_and_ended,
		forgets_the_oldest_replies_and_no_number,
		keeps_no_reply_that_is_too_long,
		has_room_for_the_longest_reply,
		keeps_sessions_apart,
		knows_its_epochs,
		knows_its_sandbox,
		is_of_one_boot_and_one_workspace,
		takes_no_file_of_others,
		is_one_process_alone,
	};

	return unit_run("journal", tests, RSB_ARRAY_SIZE(tests));
}
