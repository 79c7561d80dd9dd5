/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/session.h"
#include "tests/unit/near.h"
#include "tests/unit/unit.h"
#include "util/clock.h"
#include "util/str.h"

static int
kill_proc(struct near *near, uint64_t proc, uint64_t grace_ms, struct rsb_kill_rep *ret_rep)
{
	const struct rsb_kill_req req = { .proc = proc, .grace_ms = grace_ms };

	return near_do(near, RSB_OP_kill, &req, ret_rep);
}

static int
send_signal(struct near *near, uint64_t proc, int signal, enum rsb_signal_to to)
{
	const struct rsb_signal_req req = { .proc = proc, .signal = (uint64_t)signal, .to = to };

	return near_do(near, RSB_OP_signal, &req, NULL);
}

static void
await_line(struct near *near, uint64_t proc, const char *line)
{
	struct near_chan *out = near_chan(near, RSB_CHAN_STDOUT(proc));

	near_until(near, rsb_buf_len(&out->data) > 0 &&
				 memmem(rsb_buf_head(&out->data), rsb_buf_len(&out->data), line,
					 strlen(line)) != NULL);
}

/* ---- who stays behind ---- */

/* W-42 */
static void
reports_leader_on(bool cgroups)
{
	struct near *near = near_new(cgroups);
	uint64_t start_ns = rsb_now_ns();
	uint64_t proc = near_script(near, "(sleep 3; echo late) & echo early");
	struct rsb_wait_rep rep;
	char *out;

	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	ck_assert_uint_lt(rsb_now_ns() - start_ns, 2 * RSB_NSEC_PER_SEC);
	ck_assert_uint_eq(rep.tree_empty, 0);
	out = near_output(near, proc, &rep);
	ck_assert_str_eq(out, "early\n");
	free(out);
	/* It goes on, and so does its output. */
	near_wait(near, proc, RSB_WAIT_TREE, &rep);
	ck_assert_uint_eq(rep.tree_empty, 1);
	ck_assert_uint_eq(rep.out_size, strlen("early\nlate\n"));
	near_until(near, near_chan(near, RSB_CHAN_STDOUT(proc))->size == rep.out_size);
	near_free(near);
}

START_TEST(reports_the_leader_while_others_hold_its_pipe)
{
	reports_leader_on(_i == 1);
}
END_TEST

START_TEST(lets_what_stays_behind_live_after_free)
{
	struct near *near = near_new(true);
	uint64_t proc = near_script(near,
		"(trap 'echo got > pipe-died; exit' PIPE; for i in 1 2 3 4 5; do echo x; sleep .1; "
		"done; echo ok > survived) & echo early");
	struct rsb_wait_rep rep;
	char path[128];

	near_wait(near, proc, RSB_WAIT_LEADER, &rep);
	near_free_proc(near, proc);
	(void)snprintf(path, sizeof(path), "%s/survived", near->workspace);
	near_until(near, access(path, F_OK) == 0);
	near_free(near);
}
END_TEST

/* W-43: out of the session, out of the group, ignoring TERM, in a chain of forks. */
static void
kills_escapees_on(bool cgroups)
{
	struct near *near = near_new(cgroups);
	struct rsb_kill_rep rep;
	char marker[64], script[512];
	uint64_t proc;

	(void)snprintf(marker, sizeof(marker), "31337.%d", (int)getpid());
	(void)snprintf(script, sizeof(script),
		"trap '' TERM; for i in 1 2 3; do setsid sh -c 'trap \"\" TERM; setsid sleep %s & "
		"wait' & done; sleep %s & kill -STOP $!; echo ready; wait",
		marker, marker);
	proc = near_script(near, script);
	await_line(near, proc, "ready");
	near_until(near, near_count_processes(marker) >= 4);
	ck_assert_int_eq(kill_proc(near, proc, 100, &rep), 0);
	ck_assert_uint_eq(rep.rung, near->config.cgroups ? 1 : 2);
	ck_assert_uint_eq(rep.unkillable, 0);
	ck_assert_int_eq(near_count_processes(marker), 0);
	ck_assert_int_eq(kill_proc(near, proc, 100, &rep), 0);
	near_free(near);
}

START_TEST(kills_all_of_a_tree)
{
	kills_escapees_on(_i == 1);
}
END_TEST

START_TEST(kills_gently_at_first)
{
	struct near *near = near_new(_i == 1);
	uint64_t proc = near_script(
		near, "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep .01; done");
	struct rsb_wait_rep wait;
	struct rsb_kill_rep rep;

	await_line(near, proc, "ready");
	ck_assert_int_eq(kill_proc(near, proc, 10000, &rep), 0);
	near_wait(near, proc, RSB_WAIT_LEADER, &wait);
	ck_assert_uint_eq(wait.exited, 1);
	ck_assert_uint_eq(wait.code, 7);
	near_free(near);
}
END_TEST

START_TEST(ends_with_its_processes)
{
	struct near *near = near_new(_i == 1);
	char marker[64], script[512];

	(void)snprintf(marker, sizeof(marker), "31338.%d", (int)getpid());
	(void)snprintf(script, sizeof(script), "setsid sleep %s & exec sleep %s", marker, marker);
	(void)near_script(near, script);
	near_until(near, near_count_processes(marker) == 2);
	near_free(near);
	ck_assert_int_eq(near_count_processes(marker), 0);
}
END_TEST

static void
check_no_child(void)
{
	siginfo_t info;

	ck_assert_int_lt(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	ck_assert_int_eq(errno, ECHILD);
}

START_TEST(leaves_no_zombie)
{
	struct near *near = near_new(_i == 1);
	const int n = near_rounds(20, 8);
	struct rsb_wait_rep rep;
	uint64_t proc;

	for (int i = 0; i < n; i++) {
		proc = near_script(near, "sleep 0.01 & exit 1");
		near_wait(near, proc, RSB_WAIT_TREE, &rep);
		near_check_failure(near, "no-such-program", NULL, RSB_SPAWN_STAGE_EXEC, ENOENT);
	}
	check_no_child();
	near_free(near);
}
END_TEST

/* I10: an end that nobody saw is told as such, and never as an exit. */
START_TEST(does_not_invent_an_end)
{
	struct near *near = near_new(false);
	const char *const argv[] = { "sleep", "100", NULL };
	const struct near_spawn spawn = { .argv = argv };
	struct rsb_wait_req wait = { .proc = 0 };
	char path[64];
	uint64_t pid;
	int parent;
	FILE *file;

	wait.proc = near_spawn(near, &spawn, &pid);
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*d (sleep) %*c %d", &parent), 1);
	(void)fclose(file);
	ck_assert_int_ne(parent, getpid());
	ck_assert_int_eq(kill(parent, SIGKILL), 0);
	ck_assert_int_eq(near_do(near, RSB_OP_wait, &wait, NULL), -EIO);
	ck_assert_int_eq(kill_proc(near, wait.proc, 0, NULL), -EIO);
	ck_assert_int_eq(kill((pid_t)pid, SIGKILL), 0);
	near_free(near);
}
END_TEST

/* While it is killed it goes on forking, out of every session. */
START_TEST(kills_what_forks_all_the_time)
{
	struct near *near = near_new(_i == 1);
	struct rsb_kill_rep rep;
	char marker[64], script[512];
	uint64_t proc;

	(void)snprintf(marker, sizeof(marker), "31339.%d", (int)getpid());
	(void)snprintf(script, sizeof(script),
		"trap '' TERM; echo ready; for i in $(seq 300); do "
		"(setsid sh -c 'trap \"\" TERM; sleep %s; sleep %s' &); done; sleep %s",
		marker, marker, marker);
	proc = near_script(near, script);
	near_until(near, near_count_processes(marker) >= 30);
	ck_assert_int_eq(kill_proc(near, proc, 10, &rep), 0);
	ck_assert_uint_eq(rep.unkillable, 0);
	ck_assert_int_eq(near_count_processes(marker), 0);
	near_free(near);
}
END_TEST

/* ---- signals and cancel ---- */

/* W-44 */
static void
sends_signals_on(bool cgroups)
{
	static const int signals[] = { SIGINT, SIGHUP, SIGUSR1, SIGWINCH, SIGTERM, SIGQUIT };
	struct near *near = near_new(cgroups);

	for (size_t i = 0; i < RSB_ARRAY_SIZE(signals); i++) {
		char script[128];
		struct rsb_wait_rep rep;
		uint64_t proc;

		(void)snprintf(script, sizeof(script),
			"trap 'exit 9' %d; echo ready; while :; do sleep .01; done", signals[i]);
		proc = near_script(near, script);
		await_line(near, proc, "ready");
		ck_assert_int_eq(
			send_signal(near, proc, signals[i], (enum rsb_signal_to)(i % 3)), 0);
		near_wait(near, proc, RSB_WAIT_LEADER, &rep);
		/* The children get it too, unless it is for the leader alone. */
		ck_assert_uint_eq(rep.exited, 1);
		ck_assert_uint_eq(rep.code, 9);
		ck_assert_int_eq(send_signal(near, proc, signals[i], RSB_SIGNAL_LEADER), -ESRCH);
	}
	ck_assert_int_eq(send_signal(near, 4711, SIGTERM, RSB_SIGNAL_LEADER), -ESRCH);
	near_free(near);
}

START_TEST(sends_any_signal)
{
	sends_signals_on(_i == 1);
}
END_TEST

START_TEST(stops_and_continues)
{
	struct near *near = near_new(_i == 1);
	uint64_t proc = near_script(near, "while :; do echo x; sleep .01; done");
	struct near_chan *out = near_chan(near, RSB_CHAN_STDOUT(proc));
	struct rsb_kill_rep rep;
	uint64_t size, end_ns;

	await_line(near, proc, "x");
	ck_assert_int_eq(send_signal(near, proc, SIGSTOP, RSB_SIGNAL_TREE), 0);
	for (end_ns = rsb_now_ns() + RSB_NSEC_PER_SEC / 5; rsb_now_ns() < end_ns;)
		near_step(near, 10);
	size = out->size;
	for (end_ns = rsb_now_ns() + RSB_NSEC_PER_SEC / 5; rsb_now_ns() < end_ns;)
		near_step(near, 10);
	ck_assert_uint_eq(out->size, size);
	ck_assert_int_eq(send_signal(near, proc, SIGCONT, RSB_SIGNAL_TREE), 0);
	near_until(near, out->size > size);
	ck_assert_int_eq(kill_proc(near, proc, 1000, &rep), 0);
	near_free(near);
}
END_TEST

/* W-45 */
START_TEST(gives_up_a_wait_that_is_cancelled)
{
	struct near *near = near_new(true);
	uint64_t proc = near_script(near, "sleep 100");
	const struct rsb_wait_req wait = { .proc = proc };
	uint64_t call = near_call(near, RSB_OP_wait, &wait, 0);
	const struct rsb_cancel_req cancel = { .call = call };
	struct rsb_kill_rep rep;

	ck_assert_int_eq(near_do(near, RSB_OP_cancel, &cancel, NULL), 0);
	ck_assert_int_eq(near_reply(near, call, NULL), -EINTR);
	ck_assert_int_eq(kill_proc(near, proc, 0, &rep), 0);
	near_free(near);
}
END_TEST

START_TEST(never_starts_what_was_cancelled)
{
	struct near *near = near_new(true);
	const char *const argv[] = { "touch", "made", NULL };
	const struct near_spawn spawn = { .argv = argv, .after = 1000 };
	uint64_t proc;
	uint64_t call = near_spawn_async(near, &spawn, &proc);
	const struct rsb_cancel_req cancel = { .call = call };
	char path[128];

	ck_assert_int_eq(near_do(near, RSB_OP_cancel, &cancel, NULL), 0);
	ck_assert_int_eq(near_reply(near, call, NULL), -EINTR);
	near_check_output(near, "echo alive", "alive\n", 0);
	(void)snprintf(path, sizeof(path), "%s/made", near->workspace);
	ck_assert_int_ne(access(path, F_OK), 0);
	near_free(near);
}
END_TEST

START_TEST(refuses_what_makes_no_sense)
{
	struct near *near = near_new(true);
	const char *const none[] = { NULL };
	const char *const argv[] = { "true", NULL };
	struct near_spawn spawn = { .argv = none };
	const struct rsb_wait_req wait = { .proc = 99 };
	struct rsb_spawn_rep rep;
	uint64_t proc, call;

	call = near_spawn_async(near, &spawn, &proc);
	ck_assert_int_eq(near_reply(near, call, &rep), 0);
	ck_assert_uint_eq(rep.stage, RSB_SPAWN_STAGE_SETUP);
	ck_assert_uint_eq(rep.error, EINVAL);
	spawn = (struct near_spawn){ .argv = argv, .flags = 1u << 20 };
	call = near_spawn_async(near, &spawn, &proc);
	ck_assert_int_eq(near_reply(near, call, NULL), -EINVAL);
	ck_assert_int_eq(near_do(near, RSB_OP_wait, &wait, NULL), -ESRCH);
	near_free(near);
}
END_TEST

/* Both rungs run the same: with a cgroup for each command where there are any. */
int
main(void)
{
	const TTest *const plain[] = {
		does_not_invent_an_end,
		lets_what_stays_behind_live_after_free,
		gives_up_a_wait_that_is_cancelled,
		never_starts_what_was_cancelled,
		refuses_what_makes_no_sense,
	};
	const TTest *const twice[] = {
		kills_what_forks_all_the_time,
		reports_the_leader_while_others_hold_its_pipe,
		kills_all_of_a_tree,
		kills_gently_at_first,
		ends_with_its_processes,
		leaves_no_zombie,
		sends_any_signal,
		stops_and_continues,
	};

	return near_run("proc-tree", plain, RSB_ARRAY_SIZE(plain), twice, RSB_ARRAY_SIZE(twice));
}
