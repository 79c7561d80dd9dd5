/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "util/fd.h"
#include "util/spawn.h"

/* Runs sh -c script with standard output read into out; returns its status. */
static int
run_shell(struct rsb_spawn spec, const char *script, char *out, size_t size)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	size_t n = 0;
	pid_t pid = 0;
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	spec.argv = argv;
	spec.stdio[0] = -1;
	spec.stdio[1] = fds[1];
	spec.stdio[2] = -1;
	ck_assert_int_eq(rsb_spawn(&spec, &pid, NULL), 0);
	(void)close(fds[1]);
	ck_assert_int_eq(rsb_fd_read_full(fds[0], out, size - 1, &n), 0);
	out[n] = '\0';
	(void)close(fds[0]);
	return rsb_spawn_wait(pid);
}

START_TEST(returns_output_and_status)
{
	char out[64];

	ck_assert_int_eq(run_shell((struct rsb_spawn){ 0 }, "echo hi; exit 7", out, 64), 7);
	ck_assert_str_eq(out, "hi\n");
	ck_assert_int_eq(run_shell((struct rsb_spawn){ 0 }, "kill -9 $$", out, 64), 128 + SIGKILL);
}
END_TEST

START_TEST(says_why_exec_failed)
{
	static const char *const none[] = { "rsb-no-such-program", NULL };
	static const char *const file[] = { "/dev/null", NULL };
	static const char *const sh[] = { "sh", NULL };
	struct rsb_spawn spec = { .argv = none, .stdio = { -1, -1, -1 } };
	pid_t pid = -7;

	ck_assert_int_eq(rsb_spawn(&spec, &pid, NULL), -ENOENT);
	spec.argv = file;
	ck_assert_int_eq(rsb_spawn(&spec, &pid, NULL), -EACCES);
	spec.argv = sh;
	spec.cwd = "/rsb-no-such-directory";
	ck_assert_int_eq(rsb_spawn(&spec, &pid, NULL), -ENOENT);
	spec.cwd = NULL;
	spec.stdio[0] = 9999;
	ck_assert_int_eq(rsb_spawn(&spec, &pid, NULL), -EBADF);
	ck_assert_int_eq(pid, -7);
	/* Nothing is left to wait for. */
	ck_assert_int_eq(rsb_spawn_wait(-1), -ECHILD);
}
END_TEST

START_TEST(gives_the_child_its_own_surroundings)
{
	static const char *const env[] = { "RSB_TEST_X=1", NULL };
	struct rsb_spawn spec = { .env = env, .cwd = "/", .setsid = 1 };
	char out[64];

	ck_assert_int_eq(
		run_shell(spec,
			"echo $RSB_TEST_X$HOME; pwd; set -- $(cut -d' ' -f6 /proc/$$/stat);"
			"test $1 = $$",
			out, 64),
		0);
	ck_assert_str_eq(out, "1\n/\n");
}
END_TEST

START_TEST(closes_all_descriptors_but_those_to_keep)
{
	rsb_autoclose int lost = fcntl(0, F_DUPFD, 30);
	rsb_autoclose int kept = fcntl(0, F_DUPFD_CLOEXEC, 40);
	rsb_autoclose int also = fcntl(0, F_DUPFD_CLOEXEC, 35);
	const int keep[] = { kept, also };
	struct rsb_spawn spec = { .keep = keep, .n_keep = 2 };
	char expect[64], out[64];

	(void)snprintf(expect, sizeof(expect), "0\n1\n2\n%d\n%d\n", also, kept);
	ck_assert_int_eq(run_shell(spec,
				 "for f in /proc/$$/fd/*; do f=${f##*/};"
				 "[ $f -gt 2 ] && [ $f -lt 30 ] || echo $f; done",
				 out, 64),
		0);
	ck_assert_str_eq(out, expect);
	ck_assert_int_ge(lost, 0);
}
END_TEST

START_TEST(gives_the_child_fresh_signals)
{
	char out[512];
	sigset_t set;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	ck_assert_int_eq(run_shell((struct rsb_spawn){ 0 },
				 "grep -E '^Sig(Blk|Ign)' /proc/self/status", out, sizeof(out)),
		0);
	ck_assert_str_eq(out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}
END_TEST

START_TEST(swaps_standard_descriptors)
{
	static const char *const argv[] = { "sh", "-c", "echo out; echo err >&2", NULL };
	struct rsb_spawn spec = { .argv = argv };
	rsb_autoclose int saved_out = fcntl(1, F_DUPFD_CLOEXEC, 20);
	rsb_autoclose int saved_err = fcntl(2, F_DUPFD_CLOEXEC, 20);
	char text[64] = "";
	int out[2], err[2];
	size_t size;
	pid_t pid;
	int r;

	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
	/* Ours are put at each other's numbers, which is where the child's must not trip. */
	(void)dup2(out[1], 2);
	(void)dup2(err[1], 1);
	spec.stdio[0] = -1;
	spec.stdio[1] = 2;
	spec.stdio[2] = 1;
	r = rsb_spawn(&spec, &pid, NULL);
	(void)dup2(saved_out, 1);
	(void)dup2(saved_err, 2);
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(rsb_spawn_wait(pid), 0);
	(void)close(out[1]);
	(void)close(err[1]);
	ck_assert_int_eq(rsb_fd_read_full(out[0], text, sizeof(text), &size), 0);
	ck_assert_uint_eq(size, 4);
	ck_assert_mem_eq(text, "out\n", 4);
	ck_assert_int_eq(rsb_fd_read_full(err[0], text, sizeof(text), &size), 0);
	ck_assert_mem_eq(text, "err\n", 4);
	(void)close(out[0]);
	(void)close(err[0]);
}
END_TEST

START_TEST(tells_the_end_through_a_pidfd)
{
	static const char *const argv[] = { "sh", "-c", "read x; exit 3", NULL };
	struct rsb_spawn spec = { .argv = argv, .stdio = { -1, -1, -1 } };
	struct pollfd poll_fd = { .events = POLLIN };
	int fds[2];
	pid_t pid;

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	spec.stdio[0] = fds[0];
	ck_assert_int_eq(rsb_spawn(&spec, &pid, &poll_fd.fd), 0);
	ck_assert_int_ge(poll_fd.fd, 0);
	ck_assert(fcntl(poll_fd.fd, F_GETFD) & FD_CLOEXEC);
	ck_assert_int_eq(poll(&poll_fd, 1, 0), 0);
	(void)close(fds[1]);
	ck_assert_int_eq(poll(&poll_fd, 1, 10000), 1);
	ck_assert_int_eq(rsb_spawn_wait(pid), 3);
	(void)close(poll_fd.fd);
	(void)close(fds[0]);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		returns_output_and_status,
		says_why_exec_failed,
		gives_the_child_its_own_surroundings,
		closes_all_descriptors_but_those_to_keep,
		gives_the_child_fresh_signals,
		swaps_standard_descriptors,
		tells_the_end_through_a_pidfd,
	};

	return unit_run("spawn", tests, RSB_ARRAY_SIZE(tests));
}
