/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/codec.h"
#include "proto/session.h"
#include "proto/version.h"
#include "tests/unit/near.h"
#include "tests/unit/unit.h"
#include "util/clock.h"
#include "util/fd.h"

#define ROOT            \
	{               \
		.id = 1 \
	}

/* A file, open for writing: its fh. */
static uint64_t
create(struct near *near, const char *name, uint64_t id)
{
	const struct rsb_create_req req = {
		.parent = ROOT,
		.name = rsb_bytes_str(name),
		.id = id,
		.fh = id,
		.flags = 2 /* O_RDWR */,
		.mode = S_IFREG | 0644,
	};

	ck_assert_int_eq(near_do(near, RSB_OP_create, &req, NULL), 0);
	return id;
}

static uint64_t
append(struct near *near, uint64_t fh, const char *text)
{
	const struct rsb_write_req req = {
		.fh = fh,
		.flags = RSB_WRITE_APPEND,
		.data = rsb_bytes_str(text),
	};

	return near_call(near, RSB_OP_write, &req, 0);
}

static void
send_raw(struct near *near, const struct rsb_buf *msg)
{
	ck_assert_int_eq(
		rsb_stream_send(rsb_session_stream(near->host), RSB_CLASS_READ, rsb_buf_view(msg)),
		0);
}

static int
call_raw(struct near *near, uint32_t op, const char *body)
{
	uint64_t id = ++near->n_call;
	struct rsb_buf msg;

	rsb_buf_init(&msg, RSB_MESSAGE_MAX);
	/* As the codec does it: an array of op, id, after and the request. */
	ck_assert_int_eq(rsb_buf_printf(&msg, "\x94%c", (char)op), 0);
	ck_assert_int_eq(rsb_buf_printf(&msg, "\xcd%c%c", (char)(id >> 8), (char)id), 0);
	ck_assert_int_eq(rsb_buf_append(&msg, "\0", 1), 0);
	ck_assert_int_eq(rsb_buf_append(&msg, body, strlen(body)), 0);
	send_raw(near, &msg);
	rsb_buf_done(&msg);
	return near_reply(near, id, NULL);
}

START_TEST(answers_what_it_does_not_know)
{
	struct near *near = near_new(false);

	ck_assert_int_eq(call_raw(near, 99, "\x90"), -EOPNOTSUPP);
	ck_assert_int_eq(call_raw(near, RSB_OP_ctl_hello, "\x92\x01\x01"), -EOPNOTSUPP);
	ck_assert_int_eq(call_raw(near, 127, "\x90"), -EOPNOTSUPP);
	ck_assert_int_eq(near_do(near, RSB_OP_statfs, NULL, NULL), 0);
	near_free(near);
}
END_TEST

START_TEST(answers_what_it_cannot_decode)
{
	struct near *near = near_new(false);
	struct rsb_getattr_req req = { .node = ROOT };
	struct near_call *call;

	ck_assert_int_eq(call_raw(near, RSB_OP_getattr, "\xa1x"), -EBADMSG);
	ck_assert_int_eq(call_raw(near, RSB_OP_mkdir, "\xa1x"), -EBADMSG);
	ck_assert_int_eq(call_raw(near, RSB_OP_spawn, "\xa1x"), -EBADMSG);
	/* The broken mutation counts, so that who waits for its number goes on. */
	call = &near->calls[near_call(near, RSB_OP_getattr, &req, 1)];
	near_until(near, call->done);
	ck_assert_int_eq(call->error, 0);
	near_free(near);
}
END_TEST

START_TEST(executes_mutations_in_their_order)
{
	struct near *near = near_new(false);
	uint64_t fh = create(near, "log", 10);
	char expected[4096] = "";
	char path[128], line[16];
	char *text;

	for (int i = 0; i < 300; i++) {
		(void)snprintf(line, sizeof(line), "%d\n", i);
		(void)append(near, fh, line);
		(void)strcat(expected, line);
	}
	ck_assert_int_eq(near_reply(near, near->n_call, NULL), 0);
	(void)snprintf(path, sizeof(path), "%s/log", near->workspace);
	ck_assert_int_eq(rsb_fd_read_file(AT_FDCWD, path, 1 << 20, &text), 0);
	ck_assert_str_eq(text, expected);
	free(text);
	near_free(near);
}
END_TEST

/* I3: a command sees every mutation that was sent before it. */
START_TEST(holds_a_request_until_its_mutation_was_executed)
{
	struct near *near = near_new(true);
	const char *const argv[] = { "wc", "-l", "log", NULL };
	uint64_t fh = create(near, "log", 10);
	uint64_t n_fifo = 1;

	for (int round = 0; round < 10; round++) {
		struct near_spawn spawn = { .argv = argv };
		struct rsb_wait_rep rep;
		char expected[32];
		uint64_t proc;
		char *out;

		for (int i = 0; i < 50; i++, n_fifo++)
			(void)append(near, fh, "x\n");
		spawn.after = n_fifo;
		(void)near_spawn_async(near, &spawn, &proc);
		near_wait(near, proc, RSB_WAIT_LEADER, &rep);
		out = near_output(near, proc, &rep);
		(void)snprintf(expected, sizeof(expected), "%d log\n", (round + 1) * 50);
		ck_assert_str_eq(out, expected);
		free(out);
	}
	near_free(near);
}
END_TEST

START_TEST(waits_for_a_number_that_comes_later)
{
	struct near *near = near_new(false);
	const struct rsb_getattr_req req = { .node = ROOT };
	uint64_t call = near_call(near, RSB_OP_getattr, &req, 1);

	for (int i = 0; i < 5; i++)
		near_step(near, 1);
	ck_assert(!near->calls[call].done);
	(void)create(near, "file", 10);
	ck_assert_int_eq(near_reply(near, call, NULL), 0);
	near_free(near);
}
END_TEST

START_TEST(gives_up_a_request_that_waits_for_its_number)
{
	struct near *near = near_new(false);
	const struct rsb_getattr_req req = { .node = ROOT };
	uint64_t call = near_call(near, RSB_OP_getattr, &req, 1000);
	const struct rsb_cancel_req cancel = { .call = call };

	ck_assert_int_eq(near_do(near, RSB_OP_cancel, &cancel, NULL), 0);
	ck_assert_int_eq(near_reply(near, call, NULL), -EINTR);
	near_free(near);
}
END_TEST

/* Together their replies could take far more than the sidecar keeps for resending. */
START_TEST(admits_only_what_it_can_answer)
{
	struct near *near = near_new(false);
	const struct rsb_listxattr_req req = { .node = ROOT };

	for (int i = 0; i < 2000; i++)
		(void)near_call(near, RSB_OP_listxattr, &req, 0);
	for (uint64_t id = 1; id <= near->n_call; id++)
		ck_assert_int_eq(near_reply(near, id, NULL), 0);
	near_free(near);
}
END_TEST

static uint64_t
lock(struct near *near, uint64_t fh, uint64_t owner, bool wait)
{
	const struct rsb_lock_req req = {
		.fh = fh,
		.owner = owner,
		.type = F_WRLCK,
		.wait = wait,
	};

	return near_call(near, RSB_OP_lock, &req, 0);
}

START_TEST(ends_with_requests_that_wait)
{
	struct near *near = near_new(true);
	const struct rsb_getattr_req req = { .node = ROOT };
	uint64_t fh = create(near, "file", 10);
	const struct rsb_wait_req wait = { .proc = near_script(near, "sleep 100") };
	uint64_t call;

	ck_assert_int_eq(near_reply(near, lock(near, fh, 1, false), NULL), 0);
	call = lock(near, fh, 2, true);
	(void)near_call(near, RSB_OP_getattr, &req, 1000);
	(void)near_call(near, RSB_OP_wait, &wait, 0);
	for (int i = 0; i < 5; i++)
		near_step(near, 1);
	ck_assert(!near->calls[call].done);
	near_free(near); /* fails when it does not end */
}
END_TEST

START_TEST(cancels_a_lock_that_waits)
{
	struct near *near = near_new(false);
	uint64_t fh = create(near, "file", 10);
	struct rsb_cancel_req cancel;

	ck_assert_int_eq(near_reply(near, lock(near, fh, 1, false), NULL), 0);
	for (int i = 0; i < 50; i++) {
		cancel.call = lock(near, fh, 2, true);
		ck_assert_int_eq(near_do(near, RSB_OP_cancel, &cancel, NULL), 0);
		ck_assert_int_eq(near_reply(near, cancel.call, NULL), -EINTR);
	}
	near_free(near);
}
END_TEST

START_TEST(ends_the_session_of_a_host_that_breaks_the_rules)
{
	static const char *const bad[] = { "\xc0", "\x94\x01", "\x94\x03\x01\xc0\x90" };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		struct near *near = near_new(false);
		struct rsb_buf msg;

		rsb_buf_init(&msg, 64);
		ck_assert_int_eq(rsb_buf_append(&msg, bad[i], strlen(bad[i])), 0);
		send_raw(near, &msg);
		rsb_buf_done(&msg);
		near_pump(near);
		ck_assert(near->lost);
		ck_assert(near->sess->broken);
		near_free(near);
	}
}
END_TEST

START_TEST(executes_once_over_broken_connections)
{
	struct near *near = near_new(false);
	uint64_t fh = create(near, "log", 10);
	char expected[8192] = "";
	char path[128], line[16];
	unsigned int seed = 7;
	char *text;

	for (int i = 0; i < 1000; i++) {
		if (!near->cut_after)
			near->cut_after = 1 + (uint64_t)rand_r(&seed) % 20;
		(void)snprintf(line, sizeof(line), "%d\n", i);
		(void)append(near, fh, line);
		(void)strcat(expected, line);
		if (i % 7 == 0)
			near_step(near, 0);
	}
	for (uint64_t id = 1; id <= near->n_call; id++)
		ck_assert_int_eq(near_reply(near, id, NULL), 0);
	ck_assert_uint_gt(near->n_cut, 10);
	ck_assert_uint_eq(near->n_double, 0);
	(void)snprintf(path, sizeof(path), "%s/log", near->workspace);
	ck_assert_int_eq(rsb_fd_read_file(AT_FDCWD, path, 1 << 20, &text), 0);
	ck_assert_str_eq(text, expected);
	free(text);
	near_free(near);
}
END_TEST

/*
 * The process of the host dies at any frame, and so do its successors: nothing is executed twice,
 * no reply is lost, the order stays.
 */
START_TEST(executes_once_over_crashes_of_the_host)
{
	for (unsigned int seed = 1; seed <= 20; seed++) {
		struct near *near = near_new(false);
		uint64_t fh = create(near, "log", 10);
		unsigned int random = seed;
		char expected[8192] = "";
		char path[128], line[16];
		char *text;

		near->crash_slow = seed % 2;
		for (int i = 0; i < 300; i++) {
			if (!near->crash_after)
				near->crash_after = 1 + (uint64_t)rand_r(&random) % 30;
			if (!near->cut_after)
				near->cut_after = 1 + (uint64_t)rand_r(&random) % 40;
			(void)snprintf(line, sizeof(line), "%d\n", i);
			(void)append(near, fh, line);
			(void)strcat(expected, line);
			if (rand_r(&random) % 5 == 0)
				near_step(near, 0);
		}
		for (uint64_t id = 1; id <= near->n_call; id++)
			ck_assert_int_eq(near_reply(near, id, NULL), 0);
		ck_assert_uint_gt(near->n_crash, 5);
		ck_assert_uint_eq(near->sess->fifo_seen, 301);
		(void)snprintf(path, sizeof(path), "%s/log", near->workspace);
		ck_assert_int_eq(rsb_fd_read_file(AT_FDCWD, path, 1 << 20, &text), 0);
		ck_assert_str_eq(text, expected);
		free(text);
		near_free(near);
	}
}
END_TEST

START_TEST(goes_on_waiting_for_the_next_host)
{
	struct near *near = near_new(false);
	uint64_t fh = create(near, "file", 10);
	struct rsb_cancel_req cancel;
	uint64_t call;

	ck_assert_int_eq(near_reply(near, lock(near, fh, 1, false), NULL), 0);
	call = lock(near, fh, 2, true);
	for (int i = 0; i < 5; i++)
		near_step(near, 1);
	near_crash(near);
	for (int i = 0; i < 5; i++)
		near_step(near, 1);
	ck_assert(!near->calls[call].done);
	cancel.call = call;
	ck_assert_int_eq(near_do(near, RSB_OP_cancel, &cancel, NULL), 0);
	ck_assert_int_eq(near_reply(near, call, NULL), -EINTR);
	near_free(near);
}
END_TEST

START_TEST(lets_commands_of_a_dead_host_go_on)
{
	struct near *near = near_new(true);
	uint64_t proc = near_script(near,
		"for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 0.05; done; echo end > done");
	const struct rsb_wait_req wait = { .proc = proc };
	struct rsb_wait_rep rep;

	near_until(near, near_chan(near, RSB_CHAN_STDOUT(proc))->size);
	near_crash(near);
	ck_assert_int_eq(near_do(near, RSB_OP_wait, &wait, &rep), 0);
	ck_assert_uint_eq(rep.code, 0);
	ck_assert_int_eq(faccessat(near->config.root_fd, "done", F_OK, 0), 0);
	near_free(near);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		answers_what_it_does_not_know,
		answers_what_it_cannot_decode,
		executes_mutations_in_their_order,
		holds_a_request_until_its_mutation_was_executed,
		waits_for_a_number_that_comes_later,
		gives_up_a_request_that_waits_for_its_number,
		admits_only_what_it_can_answer,
		ends_with_requests_that_wait,
		cancels_a_lock_that_waits,
		ends_the_session_of_a_host_that_breaks_the_rules,
		executes_once_over_broken_connections,
		executes_once_over_crashes_of_the_host,
		goes_on_waiting_for_the_next_host,
		lets_commands_of_a_dead_host_go_on,
	};

	return unit_run("dispatch", tests, RSB_ARRAY_SIZE(tests));
}
