/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/desk.h"
#include "tests/unit/near.h"

/* A session with a journal, whose host can be deaf. */
struct office {
	struct desk desk;
	struct near *near;
};

static void
office_init(struct office *office)
{
	desk_init(&office->desk);
	office->near = near_new(false);
	office->near->sess->part = desk_new_part(&office->desk, "one");
}

static void
office_done(struct office *office)
{
	near_free(office->near);
	desk_done(&office->desk);
}

static void
skip(struct near *near, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		(void)near_call(near, RSB_OP_skip, NULL, 0);
}

static void
check_kept(const struct office *office, uint64_t first, uint64_t last)
{
	for (uint64_t fifo = first; fifo <= last; fifo++) {
		const struct rsb_journal_call call = {
			.fifo = fifo,
			.id = fifo,
			.op = RSB_OP_skip,
		};
		struct rsb_buf reply;

		rsb_buf_init(&reply, 1024);
		ck_assert_int_eq(rsb_journal_recall(office->near->sess->part, &call, &reply), 0);
		rsb_buf_done(&reply);
	}
}

static void
check_all_done(struct near *near)
{
	for (uint64_t id = 1; id <= near->n_call; id++)
		ck_assert_int_eq(near_reply(near, id, NULL), 0);
}

START_TEST(holds_back_what_has_no_slot)
{
	const uint64_t n = 3 * RSB_JOURNAL_SLOTS + 7;
	struct office office;
	struct near *near;

	office_init(&office);
	near = office.near;
	near->deaf = true;
	skip(near, n);
	near_until(near, near->sess->fifo_done == RSB_JOURNAL_SLOTS);
	near_step(near, 0);
	ck_assert_uint_eq(near->sess->fifo_seen, RSB_JOURNAL_SLOTS);
	check_kept(&office, 1, RSB_JOURNAL_SLOTS);
	/* Not even a new connection lets one pass, as long as nothing is known to have arrived. */
	near_cut(near);
	near_step(near, 0);
	ck_assert_uint_eq(near->sess->fifo_seen, RSB_JOURNAL_SLOTS);
	near->deaf = false;
	check_all_done(near);
	ck_assert_uint_eq(near->sess->fifo_done, n);
	check_kept(&office, n - RSB_JOURNAL_SLOTS + 1, n);
	office_done(&office);
}
END_TEST

static uint64_t
acked(const struct near *near)
{
	return rsb_stream_acked_mark(rsb_session_stream(near->sess->proto));
}

START_TEST(goes_on_by_as_many_as_arrived)
{
	struct office office;
	struct near *near;

	office_init(&office);
	near = office.near;
	near->deaf = true;
	skip(near, 2 * RSB_JOURNAL_SLOTS);
	near_until(near, near->sess->fifo_done == RSB_JOURNAL_SLOTS);
	near->deaf = false;
	near_pump(near);
	near->deaf = true;
	ck_assert_uint_gt(acked(near), 0);
	/* The host may say later what else it has heard. */
	near_until(near, near->sess->fifo_done ==
				 rsb_min(acked(near) + RSB_JOURNAL_SLOTS, 2ul * RSB_JOURNAL_SLOTS));
	check_kept(&office, acked(near) + 1, near->sess->fifo_done);
	near->deaf = false;
	check_all_done(near);
	office_done(&office);
}
END_TEST

/* Of another process of the host, which gave up what was in between. */
START_TEST(goes_on_when_numbers_are_left_out)
{
	const uint64_t far_away = 5 * RSB_JOURNAL_SLOTS + 3;
	struct office office;
	struct near *near;
	uint64_t last;

	office_init(&office);
	near = office.near;
	near->deaf = true;
	skip(near, 10);
	near_until(near, near->sess->fifo_done == 10);
	(void)near_call(near, RSB_OP_skip, NULL, far_away);
	skip(near, 10);
	near_step(near, 0);
	ck_assert_uint_eq(near->sess->fifo_seen, 10);
	check_kept(&office, 1, 10);
	near->deaf = false;
	check_all_done(near);
	ck_assert_uint_eq(near->sess->fifo_done, far_away + 11);
	/* Without anything on its way it is taken at once. */
	near_until(near,
		rsb_stream_acked_mark(rsb_session_stream(near->sess->proto)) == far_away + 11);
	near->deaf = true;
	last = near_call(near, RSB_OP_skip, NULL, 2 * far_away);
	near_until(near, near->sess->fifo_done == 2 * far_away + 1);
	near->deaf = false;
	ck_assert_int_eq(near_reply(near, last, NULL), 0);
	office_done(&office);
}
END_TEST

START_TEST(keeps_what_the_process_of_the_host_before_did_not_hear)
{
	struct office office;
	struct near *near;

	office_init(&office);
	near = office.near;
	near->sess->incarnation = 1;
	near->deaf = true;
	skip(near, RSB_JOURNAL_SLOTS + 100);
	near_until(near, near->sess->fifo_done == RSB_JOURNAL_SLOTS);
	near_crash(near);
	near_step(near, 0);
	ck_assert_uint_eq(near->sess->fifo_seen, RSB_JOURNAL_SLOTS);
	check_kept(&office, 1, RSB_JOURNAL_SLOTS);
	near->deaf = false;
	check_all_done(near);
	office_done(&office);
}
END_TEST

/* ---- the file system ---- */

static int
open_at(const char *size, struct rsb_journal **ret_journal)
{
	int root_fd = open("/", O_PATH | O_CLOEXEC), r;

	if (mount("none", "/mnt", "tmpfs", 0, size) < 0)
		_exit(2);
	r = rsb_journal_open("/mnt/journal", DESK_BOOT, root_fd, ret_journal);
	(void)close(root_fd);
	return r;
}

/* In a process of its own, whose exit status is 0 if all is as it should be. */
static int
fill(void)
{
	const struct rsb_journal_session one = desk_session("one"), two = desk_session("two");
	struct rsb_journal_part *part;
	struct rsb_journal *journal;

	if (open_at("size=256k", &journal) != -ENOSPC)
		return 3;
	/* Room for the head and one part. */
	if (open_at("size=800k", &journal) < 0)
		return 4;
	part = rsb_journal_new_part(journal, &one, DESK_EPOCH);
	if (!part)
		return 5;
	rsb_journal_hold(part, true);
	if (rsb_journal_new_part(journal, &two, DESK_EPOCH))
		return 6;
	/* What is there stays usable to its last slot. */
	desk_mutate(part, 1, 2 * RSB_JOURNAL_SLOTS);
	if (desk_recall(part, RSB_JOURNAL_SLOTS + 1) != 1)
		return 7;
	rsb_journal_close(journal);
	return 0;
}

static bool
map_to_root(const char *path, unsigned int id)
{
	rsb_autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && dprintf(fd, "0 %u 1", id) > 0;
}

static bool
refuse_groups(void)
{
	rsb_autoclose int fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && dprintf(fd, "deny") > 0;
}

/* Mounts of its own; an ordinary user is root there. */
static bool
enter_namespace(void)
{
	const unsigned int uid = getuid(), gid = getgid();

	if (unshare(CLONE_NEWNS) == 0)
		return true;
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && refuse_groups() &&
	       map_to_root("/proc/self/uid_map", uid) && map_to_root("/proc/self/gid_map", gid);
}

START_TEST(begins_nothing_that_finds_no_room_later)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (!enter_namespace())
			_exit(2);
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(2);
		_exit(fill());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	/* 2: nothing can be mounted here. */
	ck_assert_msg(status == 0 || status == 2 << 8, "status %x", (unsigned int)status);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		holds_back_what_has_no_slot,
		goes_on_by_as_many_as_arrived,
		goes_on_when_numbers_are_left_out,
		keeps_what_the_process_of_the_host_before_did_not_hear,
		begins_nothing_that_finds_no_room_later,
	};

	return unit_run("journal-full", tests, RSB_ARRAY_SIZE(tests));
}
