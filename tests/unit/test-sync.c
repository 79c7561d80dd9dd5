/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "keeper/sync.h"
#include "tests/unit/unit.h"
#include "util/fd.h"
#include "util/spawn.h"
#include "util/str.h"

/*
 * The tree that is packed, and the one that GNU tar makes of the stream: an extractor that is not
 * ours.
 */
struct trees {
	char from[64];
	char to[64];
	int packed;
	unsigned int n_notice;
};

static void
run(const char *script, const char *a, const char *b)
{
	const char *argv[] = { "sh", "-ec", script, "sh", a, b, NULL };
	struct rsb_spawn spec = { .argv = argv, .stdio = { -1, 1, 2 } };
	pid_t pid;
	int pidfd;

	ck_assert_int_eq(rsb_spawn(&spec, &pid, &pidfd), 0);
	ck_assert_int_eq(rsb_spawn_wait(pid), 0);
	(void)close(pidfd);
}

static void
trees_init(struct trees *t)
{
	*t = (struct trees){ .from = "/tmp/rsb-sync-from.XXXXXX", .to = "/tmp/rsb-sync-to.XXXXXX" };
	ck_assert_ptr_nonnull(mkdtemp(t->from));
	ck_assert_ptr_nonnull(mkdtemp(t->to));
	t->packed = open(t->to, O_TMPFILE | O_RDWR, 0600);
	ck_assert_int_ge(t->packed, 0);
}

static void
trees_done(struct trees *t)
{
	(void)close(t->packed);
	run("rm -rf \"$1\" \"$2\"", t->from, t->to);
}

static int
sink(void *arg, struct rsb_bytes data)
{
	struct trees *t = arg;

	return rsb_fd_write_full(t->packed, data.data, data.size);
}

static void
count_notice(void *arg, const char *text)
{
	struct trees *t = arg;

	(void)text;
	t->n_notice++;
}

static void
pack(struct trees *t, const char *const *more, struct rsb_sync_stats *ret_stats)
{
	struct rsb_sync sync = { .dir = t->from, .more = more, .notice = count_notice, .arg = t };
	struct rsb_sync_sink to = { .write = sink, .arg = t };
	struct rsb_diag diag = { 0 };
	int r = rsb_sync_pack(&sync, &to, ret_stats, &diag);

	ck_assert_msg(r == 0, "%s", rsb_diag_text(&diag, r));
}

static void
unpack(struct trees *t)
{
	const char *argv[] = { "tar", "--zstd", "-xSpf", "-", "-C", t->to, NULL };
	struct rsb_spawn spec = { .argv = argv, .stdio = { t->packed, 1, 2 } };
	pid_t pid;
	int pidfd;

	ck_assert_int_eq(lseek(t->packed, 0, SEEK_SET), 0);
	ck_assert_int_eq(rsb_spawn(&spec, &pid, &pidfd), 0);
	ck_assert_int_eq(rsb_spawn_wait(pid), 0);
	(void)close(pidfd);
}

START_TEST(carries_a_tree_as_it_is)
{
	struct rsb_sync_stats stats = { 0 };
	struct trees t;

	trees_init(&t);
	run("cd \"$1\"; mkdir -p a/empty a/b; echo x >a/f; chmod 751 a/f; ln a/f a/hard;"
	    "ln -s ../nowhere a/dangling; ln -s f a/link; printf y >\"$(printf 'n\\377\\nl')\";"
	    "touch -d '2001-02-03 04:05:06.123456789' a/f;"
	    "truncate -s 30M sparse; printf mid | dd of=sparse bs=1 seek=9000000 conv=notrunc 2>/dev/null",
		t.from, "");
	pack(&t, NULL, &stats);
	ck_assert_uint_lt(stats.packed, 100000);
	unpack(&t);
	run("diff -r --no-dereference \"$1\" \"$2\"; cd \"$2\"; [ $(stat -c %h a/f) = 2 ];"
	    "[ \"$(stat -c '%a %y' a/f)\" = \"$(stat -c '%a %y' \"$1/a/f\")\" ];"
	    "[ $(stat -c %b sparse) -lt 2000 ]; [ -d a/empty ]",
		t.from, t.to);
	ck_assert_uint_eq(t.n_notice, 0);
	trees_done(&t);
}
END_TEST

START_TEST(leaves_out_what_it_should)
{
	static const char *const more[] = { "*.log", NULL };
	struct rsb_sync_stats stats = { 0 };
	struct trees t;

	trees_init(&t);
	run("cd \"$1\"; mkdir .rsb sub; echo x >.rsb/x; mkfifo fifo; echo x >sub/a.log; echo x >sub/kept;"
	    "echo x >gone; echo /gone >.rsbignore; echo x >.netrc; mkdir .git;"
	    "printf '[credential]\\n\\thelper = x\\n[core]\\n' >.git/config",
		t.from, "");
	pack(&t, more, &stats);
	unpack(&t);
	run("cd \"$2\"; [ \"$(find . | sort | tr '\\n' ' ')\" = "
	    "'. ./.git ./.git/config ./.rsbignore ./sub ./sub/kept ' ]; [ \"$(cat .git/config)\" = '[core]' ];"
	    "grep -q credential \"$1/.git/config\"",
		t.from, t.to);
	ck_assert_uint_eq(stats.skipped, 2);
	ck_assert_uint_eq(t.n_notice, 3);
	trees_done(&t);
}
END_TEST

static int
broken_sink(void *arg, struct rsb_bytes data)
{
	(void)arg;
	(void)data;
	return -ENOSPC;
}

START_TEST(says_what_the_sink_said)
{
	struct rsb_sync_sink to = { .write = broken_sink };
	struct rsb_sync_stats stats;
	struct rsb_sync sync = { 0 };
	struct trees t;

	trees_init(&t);
	sync.dir = t.from;
	run("head -c 1000000 /dev/urandom >\"$1/f\"", t.from, "");
	ck_assert_int_eq(rsb_sync_pack(&sync, &to, &stats, NULL), -ENOSPC);
	sync.dir = "/nowhere/at/all";
	ck_assert_int_eq(rsb_sync_pack(&sync, &to, &stats, NULL), -ENOENT);
	trees_done(&t);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { carries_a_tree_as_it_is, leaves_out_what_it_should,
		says_what_the_sink_said };

	return unit_run("sync", tests, RSB_ARRAY_SIZE(tests));
}
