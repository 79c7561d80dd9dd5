/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/ctl.h"
#include "proto/version.h"
#include "tests/unit/unit.h"

#define ROUNDS_MAX 10000

struct end {
	struct rsb_ctl *ctl;
	unsigned int n_message;
	uint64_t last_id;
	size_t last_size;
	unsigned int n_frame;
	struct rsb_frame frame;
	uint8_t payload[16];
	int closed; /* 1: in order */
	bool free_in_callback;
};

static struct rsb_loop *loop;

static void
on_message(void *arg, const struct rsb_call_head *head)
{
	struct end *end = arg;

	end->n_message++;
	end->last_id = head->id;
	end->last_size = head->body.size;
	if (end->free_in_callback) {
		rsb_ctl_free(end->ctl);
		end->ctl = NULL;
	}
}

static void
on_frame(void *arg, const struct rsb_frame *frame)
{
	struct end *end = arg;

	end->n_frame++;
	end->frame = *frame;
	ck_assert_uint_le(frame->payload.size, sizeof(end->payload));
	if (frame->payload.size)
		memcpy(end->payload, frame->payload.data, frame->payload.size);
}

static void
on_closed(void *arg, int r)
{
	struct end *end = arg;

	end->closed = r == 0 ? 1 : r;
	rsb_ctl_free(end->ctl);
	end->ctl = NULL;
}

static const struct rsb_ctl_ops ctl_ops = {
	.message = on_message,
	.frame = on_frame,
	.closed = on_closed,
};

static void
setup(struct end *a, struct end *b)
{
	int fds[2];

	*a = (struct end){ 0 };
	*b = (struct end){ 0 };
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	ck_assert_int_eq(rsb_loop_new(rsb_clock_monotonic(), &loop), 0);
	ck_assert_int_eq(rsb_ctl_new(loop, fds[0], &ctl_ops, a, &a->ctl), 0);
	ck_assert_int_eq(rsb_ctl_new(loop, fds[1], &ctl_ops, b, &b->ctl), 0);
}

static void
teardown(struct end *a, struct end *b)
{
	rsb_ctl_free(a->ctl);
	rsb_ctl_free(b->ctl);
	rsb_loop_free(loop);
}

/* Turns the loop until nothing happens any more. */
#define TURN_UNTIL(condition)                                          \
	do {                                                           \
		int rounds_ = 0;                                       \
		while (!(condition)) {                                 \
			ck_assert_int_lt(rounds_++, ROUNDS_MAX);       \
			ck_assert_int_ge(rsb_loop_step(loop, 100), 0); \
		}                                                      \
	} while (0)

static struct rsb_buf
make_message(uint64_t id, size_t size)
{
	static uint8_t big[RSB_IO_MAX];
	const struct rsb_write_req req = { .data = { big, size } };
	struct rsb_buf msg = { 0 };

	ck_assert_int_eq(rsb_codec_request(RSB_OP_write, id, 0, &req, RSB_PROTO_VERSION, &msg), 0);
	return msg;
}

START_TEST(carries_messages_larger_than_a_packet)
{
	static uint8_t json[65536];
	const struct rsb_ctl_status_rep rep = { .json = { json, sizeof(json) } };
	struct rsb_buf msg = { 0 };
	struct end a, b;

	setup(&a, &b);
	ck_assert_int_eq(
		rsb_codec_reply(RSB_OP_ctl_status, 5, 0, &rep, RSB_PROTO_VERSION, &msg), 0);
	ck_assert_uint_gt(rsb_buf_len(&msg), RSB_FRAME_PAYLOAD_MAX);
	ck_assert_int_eq(rsb_ctl_send(a.ctl, rsb_buf_view(&msg)), 0);
	TURN_UNTIL(b.n_message == 1);
	ck_assert_uint_eq(b.last_id, 5);
	ck_assert_uint_gt(b.last_size, sizeof(json));
	rsb_buf_done(&msg);
	teardown(&a, &b);
}
END_TEST

START_TEST(carries_stream_frames_beside_messages)
{
	const struct rsb_frame frame = {
		.type = RSB_FRAME_STREAM,
		.flags = RSB_FRAME_FIN,
		.a = 9,
		.b = 1000,
		.payload = rsb_bytes_str("abc"),
	};
	struct end a, b;

	setup(&a, &b);
	ck_assert_int_eq(rsb_ctl_send_frame(b.ctl, &frame), 0);
	TURN_UNTIL(a.n_frame == 1);
	ck_assert_uint_eq(a.frame.a, 9);
	ck_assert_uint_eq(a.frame.b, 1000);
	ck_assert_uint_eq(a.frame.flags, RSB_FRAME_FIN);
	ck_assert_mem_eq(a.payload, "abc", 3);
	teardown(&a, &b);
}
END_TEST

/* What the socket does not take waits, in order, up to the maximum. */
START_TEST(queues_for_a_slow_reader_and_not_without_end)
{
	struct rsb_buf msg;
	struct end a, b;
	uint64_t n = 0;
	int r;

	setup(&a, &b);
	do {
		msg = make_message(++n, RSB_IO_MAX);
		r = rsb_ctl_send(a.ctl, rsb_buf_view(&msg));
		rsb_buf_done(&msg);
	} while (r == 0);
	ck_assert_int_eq(r, -EAGAIN);
	ck_assert_uint_gt(rsb_ctl_queued(a.ctl), RSB_CTL_QUEUE_MAX / 2);
	ck_assert_uint_le(rsb_ctl_queued(a.ctl), RSB_CTL_QUEUE_MAX);
	TURN_UNTIL(b.n_message == n - 1);
	ck_assert_uint_eq(b.last_id, n - 1);
	ck_assert_uint_eq(rsb_ctl_queued(a.ctl), 0);
	teardown(&a, &b);
}
END_TEST

START_TEST(tells_when_the_other_end_is_gone)
{
	struct rsb_buf msg = make_message(1, 1);
	struct end a, b;

	setup(&a, &b);
	ck_assert_int_eq(rsb_ctl_send(a.ctl, rsb_buf_view(&msg)), 0);
	rsb_ctl_free(a.ctl);
	a.ctl = NULL;
	TURN_UNTIL(b.closed);
	ck_assert_int_eq(b.closed, 1);
	ck_assert_uint_eq(b.n_message, 1);
	rsb_buf_done(&msg);
	teardown(&a, &b);
}
END_TEST

/* It went without having read what it was sent, and whether more waited for it or not. */
START_TEST(takes_what_was_sent_before_the_end)
{
	struct rsb_buf msg;
	struct end a, b;

	for (int full = 0; full < 2; full++) {
		setup(&a, &b);
		msg = make_message(1, 1);
		ck_assert_int_eq(rsb_ctl_send(a.ctl, rsb_buf_view(&msg)), 0);
		ck_assert_int_eq(rsb_ctl_send(a.ctl, rsb_buf_view(&msg)), 0);
		do {
			ck_assert_int_eq(rsb_ctl_send(b.ctl, rsb_buf_view(&msg)), 0);
		} while (full && rsb_ctl_queued(b.ctl) == 0);
		rsb_ctl_free(a.ctl);
		a.ctl = NULL;
		TURN_UNTIL(b.closed);
		ck_assert_int_eq(b.closed, 1);
		ck_assert_uint_eq(b.n_message, 2);
		rsb_buf_done(&msg);
		teardown(&a, &b);
	}
}
END_TEST

START_TEST(can_be_freed_from_its_own_callback)
{
	struct rsb_buf msg = make_message(1, 1);
	struct end a, b;

	setup(&a, &b);
	b.free_in_callback = true;
	ck_assert_int_eq(rsb_ctl_send(a.ctl, rsb_buf_view(&msg)), 0);
	ck_assert_int_eq(rsb_ctl_send(a.ctl, rsb_buf_view(&msg)), 0);
	TURN_UNTIL(a.closed);
	ck_assert_uint_eq(b.n_message, 1);
	ck_assert_int_eq(b.closed, 0);
	rsb_buf_done(&msg);
	teardown(&a, &b);
}
END_TEST

START_TEST(refuses_what_is_no_frame_of_a_control_socket)
{
	static const uint8_t junk[][RSB_FRAME_HEAD] = {
		{ RSB_FRAME_PING }, { RSB_FRAME_MESSAGE, 0, 0, 0, 0, 0, 0, 0, 0, 1 }, /* a number */
		{ RSB_FRAME_MESSAGE, 0x80 }, { RSB_FRAME_MESSAGE }, /* no envelope */
	};
	struct end b;
	size_t i;
	int fds[2];

	for (i = 0; i < RSB_ARRAY_SIZE(junk); i++) {
		b = (struct end){ 0 };
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
		ck_assert_int_eq(rsb_loop_new(rsb_clock_monotonic(), &loop), 0);
		ck_assert_int_eq(rsb_ctl_new(loop, fds[1], &ctl_ops, &b, &b.ctl), 0);
		ck_assert_int_eq(write(fds[0], junk[i], sizeof(junk[i])), sizeof(junk[i]));
		TURN_UNTIL(b.closed);
		ck_assert_int_eq(b.closed, -EBADMSG);
		rsb_loop_free(loop);
		close(fds[0]);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		carries_messages_larger_than_a_packet,
		carries_stream_frames_beside_messages,
		queues_for_a_slow_reader_and_not_without_end,
		tells_when_the_other_end_is_gone,
		takes_what_was_sent_before_the_end,
		can_be_freed_from_its_own_callback,
		refuses_what_is_no_frame_of_a_control_socket,
	};

	return unit_run("ctl", tests, RSB_ARRAY_SIZE(tests));
}
