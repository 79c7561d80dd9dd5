/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/herald.h"
#include "keeper/hook.h"
#include "tests/unit/unit.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/str.h"

static char dir[64];
static char dir_env[96];
static char path_env[] = "PATH=/usr/bin:/bin";
static char word_env[] = "WORD=theirs";
static char *env[] = { dir_env, path_env, word_env, NULL };

static void
setup(void)
{
	strcpy(dir, "/tmp/rsb-herald.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(dir_env, sizeof(dir_env), "TEST_DIR=%s", dir);
}

static void
teardown(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static int
run(const char *command, uint64_t timeout_ns, int stop_fd, struct rsb_diag *diag)
{
	static const char *const vars[] = { "WORD=ours", "MORE=x y", NULL };
	const struct rsb_hook hook = { .command = command,
		.env = env,
		.vars = vars,
		.cwd = dir,
		.quiet = true,
		.timeout_ns = timeout_ns,
		.stop_fd = stop_fd };

	return rsb_hook_run(&hook, diag);
}

static void
file_is(const char *name, const char *want)
{
	rsb_autofree char *path = rsb_str_path(dir, name);
	rsb_autofree char *text = NULL;

	ck_assert_int_eq(rsb_fd_read_file(AT_FDCWD, path, 1 << 16, &text), 0);
	ck_assert_str_eq(text, want);
}

START_TEST(gives_variables_and_tells_the_status)
{
	setup();
	ck_assert_int_eq(
		run("echo $WORD/$MORE/$(pwd) >out; exit 7", RSB_NSEC_PER_SEC * 10, -1, NULL), 7);
	{
		rsb_autofree char *want = rsb_str_printf("ours/x y/%s\n", dir);

		file_is("out", want);
	}
	ck_assert_int_eq(run("kill -TERM $$", RSB_NSEC_PER_SEC * 10, -1, NULL), 128 + SIGTERM);
	teardown();
}
END_TEST

START_TEST(is_ended_when_it_takes_too_long)
{
	rsb_autofree char *path = NULL;
	struct rsb_diag diag = { 0 };
	char byte;
	int fd;

	setup();
	/* At its end nobody of the session is left to hold it. */
	path = rsb_str_path(dir, "fifo");
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_eq(run("exec 3>fifo; sleep 1000 & sleep 1000", RSB_NSEC_PER_SEC, -1, &diag),
		-ETIMEDOUT);
	ck_assert_ptr_nonnull(strstr(diag.text, "took longer than 1 s"));
	ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
	ck_assert_int_eq(read(fd, &byte, 1), 0);
	(void)close(fd);
	teardown();
}
END_TEST

START_TEST(is_ended_when_we_end)
{
	const uint64_t one = 1;
	int stop_fd = eventfd(0, EFD_CLOEXEC);

	setup();
	ck_assert_int_eq(write(stop_fd, &one, sizeof(one)), sizeof(one));
	ck_assert_int_eq(run("sleep 1000", RSB_NSEC_PER_SEC * 60, stop_fd, NULL), -ECANCELED);
	(void)close(stop_fd);
	teardown();
}
END_TEST

/* All of its session, that is; who left it meant to stay. */
START_TEST(ends_with_who_was_killed)
{
	static const char command[] =
		"setsid sh -c 'echo $$ >stays; exec sleep 1000' & while ! test -s stays; do :; done;"
		"exec 3>fifo; sleep 1000 & bash -c 'set -m; sleep 1000 & echo ready >&3; wait' & wait";
	rsb_autofree char *fifo = NULL;
	rsb_autofree char *stays = NULL;
	rsb_autofree char *text = NULL;
	char said[8];
	size_t size;
	pid_t pid;
	int fd;

	setup();
	fifo = rsb_str_path(dir, "fifo");
	stays = rsb_str_path(dir, "stays");
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(run(command, RSB_NSEC_PER_SEC * 60, -1, NULL) != 0);
	fd = open(fifo, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(rsb_fd_read_full(fd, said, 6, &size), 0);
	ck_assert_uint_eq(size, 6);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(rsb_fd_read_full(fd, said, sizeof(said), &size), 0);
	ck_assert_uint_eq(size, 0);
	(void)close(fd);
	ck_assert_int_eq(rsb_fd_read_file(AT_FDCWD, stays, 64, &text), 0);
	ck_assert_int_eq(kill(atoi(text), SIGKILL), 0);
	teardown();
}
END_TEST

START_TEST(cannot_be_started_in_no_directory)
{
	static const char *const vars[] = { NULL };
	const struct rsb_hook hook = { .command = "true",
		.env = env,
		.vars = vars,
		.cwd = "/nonexistent",
		.quiet = true,
		.timeout_ns = RSB_NSEC_PER_SEC,
		.stop_fd = -1 };
	struct rsb_diag diag = { 0 };

	ck_assert_int_eq(rsb_hook_run(&hook, &diag), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "cannot be started"));
}
END_TEST

static struct rsb_herald *
herald_new(const char *command)
{
	const struct rsb_herald_config config = { .command = command,
		.sandbox = "one",
		.sandbox_id = "iabc",
		.dir = "/src",
		.timeout_ns = RSB_NSEC_PER_SEC * 60,
		.env = env };
	struct rsb_herald *herald;

	ck_assert_int_eq(rsb_herald_new(&config, &herald), 0);
	return herald;
}

/* Waits for a name in the directory. */
static void
wait_for(int watch_fd, const char *name)
{
	rsb_autofree char *path = rsb_str_path(dir, name);
	char events[4096];

	while (access(path, F_OK) < 0)
		ck_assert_int_gt(read(watch_fd, events, sizeof(events)), 0);
}

START_TEST(tells_of_events_in_their_order)
{
	struct rsb_herald *herald;
	int watch_fd = inotify_init1(IN_CLOEXEC);

	setup();
	ck_assert_int_ge(inotify_add_watch(watch_fd, dir, IN_MOVED_TO), 0);
	herald = herald_new("cd $TEST_DIR; echo \"$RSB_SANDBOX $RSB_SANDBOX_ID $RSB_DIR "
			    "$RSB_EVENT_KIND: $RSB_EVENT_TEXT\" >>log; [ -n \"$RSB_EVENT_TIME\" ]; "
			    "cp log new; mv new is-$RSB_EVENT_KIND");
	rsb_herald_tell(herald, "down", "it \033[2J broke; $(touch hacked)");
	rsb_herald_tell(herald, "live", "again");
	wait_for(watch_fd, "is-live");
	file_is("is-live", "one iabc /src down: it \\x1b[2J broke; $(touch hacked)\n"
			   "one iabc /src live: again\n");
	rsb_herald_free(herald);
	(void)close(watch_fd);
	teardown();
}
END_TEST

START_TEST(makes_nobody_wait)
{
	const uint64_t start_ns = rsb_now_ns();
	struct rsb_herald *herald;
	int watch_fd = inotify_init1(IN_CLOEXEC);

	setup();
	ck_assert_int_ge(inotify_add_watch(watch_fd, dir, IN_CREATE), 0);
	herald = herald_new("touch $TEST_DIR/runs; sleep 1000");
	for (unsigned int i = 0; i < 3 * RSB_HERALD_WAITING_MAX; i++)
		rsb_herald_tell(herald, "down", "again and again");
	wait_for(watch_fd, "runs");
	rsb_herald_free(herald);
	ck_assert_uint_lt(rsb_now_ns() - start_ns, 50 * RSB_NSEC_PER_SEC);
	(void)close(watch_fd);
	teardown();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		gives_variables_and_tells_the_status,
		is_ended_when_it_takes_too_long,
		is_ended_when_we_end,
		ends_with_who_was_killed,
		cannot_be_started_in_no_directory,
		tells_of_events_in_their_order,
		makes_nobody_wait,
	};

	return unit_run("herald", tests, RSB_ARRAY_SIZE(tests));
}
