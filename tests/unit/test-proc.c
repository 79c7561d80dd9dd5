/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/session.h"
#include "tests/unit/near.h"
#include "tests/unit/unit.h"
#include "util/clock.h"
#include "util/str.h"

/* ---- facts of an end ---- */

static void
reports_facts_on(bool cgroups)
{
	struct near *near = near_new(cgroups);
	struct rsb_wait_rep rep;

	near_check_output(near, "echo hello; exit 3", "hello\n", 3);
	near_wait(near, near_script(near, "kill -TERM $$"), RSB_WAIT_LEADER, &rep);
	ck_assert_uint_eq(rep.exited, 0);
	ck_assert_uint_eq(rep.signal, SIGTERM);
	ck_assert_uint_eq(rep.core, 0);
	near_wait(near, near_script(near, "ulimit -c unlimited; kill -ABRT $$"), RSB_WAIT_LEADER,
		&rep);
	ck_assert_uint_eq(rep.exited, 0);
	ck_assert_uint_eq(rep.signal, SIGABRT);
	near_free(near);
}

START_TEST(reports_exit_and_signal)
{
	reports_facts_on(false);
	reports_facts_on(true);
}
END_TEST

static void
loses_nothing_on(bool cgroups)
{
	struct near *near = near_new(cgroups);
	int n = near_rounds(1000, 30);

	for (int i = 0; i < n; i++) {
		const char *const argv[] = { "printf", "%05d", "12", NULL };
		const struct near_spawn spawn = { .argv = argv, .flags = RSB_SPAWN_STDIN_NULL };
		uint64_t proc = near_spawn(near, &spawn, NULL);
		struct rsb_wait_rep rep;
		char *out;

		near_wait(near, proc, RSB_WAIT_LEADER, &rep);
		out = near_output(near, proc, &rep);
		ck_assert_str_eq(out, "00012");
		free(out);
		near_free_proc(near, proc);
	}
	near_free(near);
}

START_TEST(loses_no_byte_of_many_fast_commands)
{
	loses_nothing_on(_i == 1);
}
END_TEST

START_TEST(runs_many_at_once)
{
	struct near *near = near_new(_i == 1);
	uint64_t procs[200];
	const int n = near_rounds((int)RSB_ARRAY_SIZE(procs), 50);
	struct rsb_wait_rep rep;

	for (int i = 0; i < n; i++) {
		const char *const argv[] = { "sh", "-c", "cat; echo $$ >&2; exit 5", NULL };
		const struct near_spawn spawn = { .argv = argv };

		(void)near_spawn_async(near, &spawn, &procs[i]);
	}
	for (int i = 0; i < n; i++)
		ck_assert_int_eq(near_send(near, RSB_CHAN_STDIN(procs[i]), "hello", 5, true), 0);
	for (int i = 0; i < n; i++) {
		near_wait(near, procs[i], RSB_WAIT_TREE, &rep);
		ck_assert_uint_eq(rep.code, 5);
		ck_assert_uint_eq(rep.out_size, 5);
		ck_assert_uint_gt(rep.err_size, 1);
		near_free_proc(near, procs[i]);
	}
	near_free(near);
}
END_TEST

START_TEST(keeps_streams_apart_or_merges_them)
{
	struct near *near = near_new(true);
	const char *const argv[] = { "sh", "-c", "echo o; echo e >&2; echo o", NULL };
	struct near_spawn spawn = { .argv = argv };
	uint64_t proc = near_spawn(near, &spawn, NULL);
	struct rsb_wait_rep rep;
	char *out;

	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	ck_assert_uint_eq(rep.out_size, 4);
	ck_assert_uint_eq(rep.err_size, 2);
	spawn.flags = RSB_SPAWN_MERGE_STDERR;
	proc = near_spawn(near, &spawn, NULL);
	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	out = near_output(near, proc, &rep);
	ck_assert_str_eq(out, "o\ne\no\n");
	free(out);
	near_free(near);
}
END_TEST

/* ---- starts that fail ---- */

static void
survives_failures_on(bool cgroups)
{
	struct near *near = near_new(cgroups);

	near_check_failure(near, "no-such-program", NULL, RSB_SPAWN_STAGE_EXEC, ENOENT);
	near_check_failure(near, "", NULL, RSB_SPAWN_STAGE_EXEC, ENOENT);
	near_check_failure(near, "/etc/passwd", NULL, RSB_SPAWN_STAGE_EXEC, EACCES);
	near_check_failure(near, "true", "no-such-dir", RSB_SPAWN_STAGE_CHDIR, ENOENT);
	near_check_output(near, "echo alive", "alive\n", 0);
	near_free(near);
}

/* W-34 */
START_TEST(survives_a_missing_program_and_directory)
{
	survives_failures_on(false);
	survives_failures_on(true);
}
END_TEST

START_TEST(runs_in_cwd_with_its_environment)
{
	struct near *near = near_new(true);
	const char *const argv[] = { "sh", "-c", "pwd; echo $X; echo $HOME; umask; ulimit -n",
		NULL };
	const char *const env[] = { "X=1 2", "HOME=/elsewhere", NULL };
	const struct near_spawn spawn = { .argv = argv, .env = env, .cwd = "sub" };
	struct rsb_wait_rep rep;
	char path[128], expected[256];
	uint64_t proc;
	char *out;

	(void)snprintf(path, sizeof(path), "%s/sub", near->workspace);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	proc = near_spawn(near, &spawn, NULL);
	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	out = near_output(near, proc, &rep);
	(void)snprintf(expected, sizeof(expected), "%s\n1 2\n/elsewhere\n0022\n%llu\n", path,
		(unsigned long long)near->config.cmd_nofile.rlim_cur);
	ck_assert_str_eq(out, expected);
	free(out);
	near_free(near);
}
END_TEST

/* W-27: busybox and virtual environments act by the name that they are called. */
START_TEST(leaves_argv0_as_it_was_given)
{
	struct near *near = near_new(true);
	const char *const argv[] = { "sh", "-c", "tr '\\0' ' ' < /proc/$$/cmdline | cut -d' ' -f1",
		NULL };
	const struct near_spawn spawn = { .argv = argv };
	uint64_t proc = near_spawn(near, &spawn, NULL);
	struct rsb_wait_rep rep;
	char *out;

	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	out = near_output(near, proc, &rep);
	ck_assert_str_eq(out, "sh\n");
	free(out);
	near_free(near);
}
END_TEST

START_TEST(runs_a_script_without_interpreter_line_by_sh)
{
	struct near *near = near_new(true);
	char path[128];
	const char *const argv[] = { "./script", "a b", NULL };
	const struct near_spawn spawn = { .argv = argv };
	struct rsb_wait_rep rep;
	uint64_t proc;
	FILE *file;
	char *out;

	(void)snprintf(path, sizeof(path), "%s/script", near->workspace);
	file = fopen(path, "w");
	ck_assert_int_gt(fprintf(file, "echo \"$1\"\n"), 0);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(chmod(path, 0755), 0);
	proc = near_spawn(near, &spawn, NULL);
	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	out = near_output(near, proc, &rep);
	ck_assert_str_eq(out, "a b\n");
	free(out);
	near_free(near);
}
END_TEST

START_TEST(passes_the_longest_argument_whole)
{
	struct near *near = near_new(true);
	char *arg = malloc(RSB_ARG_MAX + 1);
	const char *const argv[] = { "printf", "%s", arg, NULL };
	const struct near_spawn spawn = { .argv = argv };
	struct rsb_wait_rep rep;
	uint64_t proc;
	char *out;

	memset(arg, 'x', RSB_ARG_MAX);
	arg[RSB_ARG_MAX] = 0;
	proc = near_spawn(near, &spawn, NULL);
	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	ck_assert_uint_eq(rep.out_size, RSB_ARG_MAX);
	out = near_output(near, proc, &rep);
	ck_assert_str_eq(out, arg);
	free(out);
	free(arg);
	near_free(near);
}
END_TEST

/* ---- streams ---- */

START_TEST(feeds_stdin_to_its_end)
{
	struct near *near = near_new(true);
	const char *const argv[] = { "md5sum", NULL };
	const struct near_spawn spawn = { .argv = argv };
	size_t size = 5 << 20;
	char *data = calloc(1, size);
	struct rsb_wait_rep rep;
	uint64_t proc;
	char *out;

	/* The bytes go right behind the request, before it is known whether the command runs. */
	(void)near_spawn_async(near, &spawn, &proc);
	ck_assert_int_eq(near_send(near, RSB_CHAN_STDIN(proc), data, size, true), 0);
	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	out = near_output(near, proc, &rep);
	ck_assert_str_eq(out, "5f363e0e58a95f06cbe9bbc662c5dfb6  -\n");
	free(out);
	free(data);
	near_free(near);
}
END_TEST

/* W-35 */
START_TEST(survives_a_command_that_does_not_read_stdin)
{
	struct near *near = near_new(true);
	const char *const argv[] = { "true", NULL };
	const struct near_spawn spawn = { .argv = argv };
	size_t size = 5 << 20;
	char *data = calloc(1, size);
	struct rsb_wait_rep rep;
	uint64_t proc;

	(void)near_spawn_async(near, &spawn, &proc);
	ck_assert_int_eq(near_send(near, RSB_CHAN_STDIN(proc), data, size, true), -EPIPE);
	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	ck_assert_uint_eq(rep.exited, 1);
	near_check_output(near, "echo alive", "alive\n", 0);
	free(data);
	near_free(near);
}
END_TEST

static long
rss_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long size, rss;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%ld %ld", &size, &rss), 2);
	(void)fclose(file);
	return rss;
}

/* W-37: the host does not read, so the command has to wait, and memory stays what it was. */
START_TEST(stays_small_under_a_stopped_reader)
{
	struct near *near = near_new(true);
	const char *const argv[] = { "yes", NULL };
	const struct near_spawn spawn = { .argv = argv };
	uint64_t proc, end_ns, size;
	struct near_chan *out;
	long before, after;

	proc = near->next_proc;
	out = near_chan(near, RSB_CHAN_STDOUT(proc));
	out->hold = true;
	ck_assert_uint_eq(near_spawn(near, &spawn, NULL), proc);
	near_until(near, out->size > 0);
	for (end_ns = rsb_now_ns() + RSB_NSEC_PER_SEC; rsb_now_ns() < end_ns;)
		near_step(near, 10);
	before = rss_pages();
	for (end_ns = rsb_now_ns() + RSB_NSEC_PER_SEC; rsb_now_ns() < end_ns;)
		near_step(near, 10);
	after = rss_pages();
	ck_assert_int_le(after, before + before / 10);
	ck_assert_uint_le(out->size, RSB_CHAN_WINDOW_MAX);
	/* It goes on as soon as the reader does. */
	size = out->size;
	out->hold = false;
	rsb_chan_consume(rsb_session_chans(near->host), RSB_CHAN_STDOUT(proc), size);
	near_until(near, out->size > size + (uint64_t)near_rounds(3, 1) * RSB_CHAN_WINDOW_MAX);
	near_free(near);
}
END_TEST

START_TEST(ends_a_writer_whose_reader_gave_up)
{
	struct near *near = near_new(true);
	const char *const argv[] = { "yes", NULL };
	const struct near_spawn spawn = { .argv = argv };
	uint64_t proc = near_spawn(near, &spawn, NULL);
	struct near_chan *out = near_chan(near, RSB_CHAN_STDOUT(proc));
	struct rsb_wait_rep rep;

	near_until(near, out->size > 0);
	rsb_chan_reset(rsb_session_chans(near->host), RSB_CHAN_STDOUT(proc), -EPIPE);
	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	ck_assert_uint_eq(rep.signal, SIGPIPE);
	near_free(near);
}
END_TEST

/* ---- broken connections ---- */

START_TEST(loses_nothing_over_broken_connections)
{
	struct near *near = near_new(true);
	const char *const argv[] = { "md5sum", NULL };
	const struct near_spawn spawn = { .argv = argv };
	size_t size = 1 << 20;
	char *data = calloc(1, size);
	unsigned int seed = 1;
	const int n = near_rounds(20, 8);

	for (int i = 0; i < n; i++) {
		struct rsb_wait_rep rep;
		uint64_t proc;
		char *out;

		near->cut_after = 1 + (uint64_t)rand_r(&seed) % 30;
		(void)near_spawn_async(near, &spawn, &proc);
		ck_assert_int_eq(near_send(near, RSB_CHAN_STDIN(proc), data, size, true), 0);
		near_wait(near, proc, RSB_WAIT_LEADER, &rep);
		near->cut_after = 1 + (uint64_t)rand_r(&seed) % 3;
		out = near_output(near, proc, &rep);
		ck_assert_str_eq(out, "b6d81b360a5672d80c27430f39153e2c  -\n");
		free(out);
		near->cut_after = 1 + (uint64_t)rand_r(&seed) % 10;
		near_check_output(
			near, "seq 20000 | md5sum", "e071f707df7bbeee2a6a1eb48011ddd0  -\n", 0);
	}
	ck_assert_uint_gt(near->n_cut, (uint64_t)n);
	ck_assert_uint_eq(near->n_double, 0);
	free(data);
	near_free(near);
}
END_TEST

START_TEST(a_full_table_recovers)
{
	static const char *const argv[] = { "true", NULL };
	const struct near_spawn spawn = { .argv = argv, .flags = RSB_SPAWN_STDIN_NULL };
	struct near *near;
	uint64_t procs[RSB_PROCS_MAX], calls[RSB_PROCS_MAX];
	struct rsb_wait_rep rep;
	uint64_t over;

	/* With a sanitizer as many forks take minutes, and show no more. */
	if (getenv("RSB_TEST_QUICK"))
		return;
	near = near_new(true);
	for (size_t i = 0; i < RSB_PROCS_MAX; i++)
		calls[i] = near_spawn_async(near, &spawn, &procs[i]);
	for (size_t i = 0; i < RSB_PROCS_MAX; i++)
		ck_assert_int_eq(near_reply(near, calls[i], NULL), 0);
	ck_assert_int_eq(near_reply(near, near_spawn_async(near, &spawn, &over), NULL), -ENFILE);
	near_wait(near, procs[0], RSB_WAIT_TREE, &rep);
	near_free_proc(near, procs[0]);
	near_wait(near, near_spawn(near, &spawn, NULL), RSB_WAIT_LEADER, &rep);
	ck_assert_uint_eq(rep.exited, 1);
	near_free(near);
}
END_TEST

/* Both rungs run the same: with a cgroup for each command where there are any. */
int
main(void)
{
	const TTest *const plain[] = {
		reports_exit_and_signal,
		keeps_streams_apart_or_merges_them,
		survives_a_missing_program_and_directory,
		runs_in_cwd_with_its_environment,
		leaves_argv0_as_it_was_given,
		runs_a_script_without_interpreter_line_by_sh,
		passes_the_longest_argument_whole,
		feeds_stdin_to_its_end,
		survives_a_command_that_does_not_read_stdin,
		stays_small_under_a_stopped_reader,
		ends_a_writer_whose_reader_gave_up,
		loses_nothing_over_broken_connections,
		a_full_table_recovers,
	};
	const TTest *const twice[] = {
		runs_many_at_once,
		loses_no_byte_of_many_fast_commands,
	};

	return near_run("proc", plain, RSB_ARRAY_SIZE(plain), twice, RSB_ARRAY_SIZE(twice));
}
