/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/stream.h"
#include "tests/unit/unit.h"

#define COST(size) ((size_t)(size) + RSB_STREAM_COST)

static struct rsb_stream *
stream_new(size_t send_max, size_t window)
{
	struct rsb_stream *stream;

	ck_assert_int_eq(rsb_stream_new(send_max, window, &stream), 0);
	return stream;
}

static void
connect_both(struct rsb_stream *a, struct rsb_stream *b)
{
	struct rsb_stream_state of_a, of_b;

	rsb_stream_detach(a);
	rsb_stream_detach(b);
	rsb_stream_state(a, &of_a);
	rsb_stream_state(b, &of_b);
	ck_assert_int_eq(rsb_stream_attach(a, &of_b), 0);
	ck_assert_int_eq(rsb_stream_attach(b, &of_a), 0);
}

static void
send_text(struct rsb_stream *stream, enum rsb_class class, const char *text)
{
	ck_assert_int_eq(rsb_stream_send(stream, class, rsb_bytes_str(text)), 0);
}

/* At most n frames; returns how many there were. */
static size_t
carry(struct rsb_stream *from, struct rsb_stream *to, size_t n)
{
	struct rsb_frame frame;
	size_t i;

	for (i = 0; i < n && rsb_stream_output(from, &frame) > 0; i++)
		ck_assert_int_eq(rsb_stream_input(to, &frame), 0);
	return i;
}

static void
carry_ack(struct rsb_stream *from, struct rsb_stream *to)
{
	struct rsb_frame frame;

	rsb_stream_output_ack(from, &frame);
	ck_assert_int_eq(rsb_stream_input(to, &frame), 0);
}

static void
check_taken(struct rsb_stream *stream, const char *text)
{
	const struct rsb_msg *seen = rsb_stream_peek(stream);
	struct rsb_msg *msg = rsb_stream_take(stream);

	ck_assert_ptr_eq(msg, seen);
	if (!text) {
		ck_assert_ptr_null(msg);
		return;
	}
	ck_assert_ptr_nonnull(msg);
	ck_assert_ptr_null(msg->next);
	ck_assert_uint_eq(msg->size, strlen(text));
	ck_assert_mem_eq(msg->data, text, msg->size);
	free(msg);
}

static int
input(struct rsb_stream *stream, struct rsb_frame frame)
{
	return rsb_stream_input(stream, &frame);
}

START_TEST(refuses_a_stream_without_room)
{
	struct rsb_stream *stream;

	ck_assert_int_eq(rsb_stream_new(0, 1, &stream), -EINVAL);
	ck_assert_int_eq(rsb_stream_new(1, 0, &stream), -EINVAL);
	rsb_stream_free(NULL);
}
END_TEST

START_TEST(delivers_in_the_order_of_sending)
{
	struct rsb_stream *a = stream_new(1 << 16, 1 << 16), *b = stream_new(1 << 16, 1 << 16);

	send_text(a, RSB_CLASS_FIFO, "one");
	ck_assert_uint_eq(carry(a, b, 9), 0);
	connect_both(a, b);
	send_text(a, RSB_CLASS_FIFO, "");
	send_text(a, RSB_CLASS_FIFO, "three");
	ck_assert_uint_eq(carry(a, b, 9), 3);
	check_taken(b, "one");
	check_taken(b, "");
	check_taken(b, "three");
	check_taken(b, NULL);
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

START_TEST(lets_mutations_pass_reads_but_not_starve_them)
{
	struct rsb_stream *a = stream_new(1 << 16, 1 << 16), *b = stream_new(1 << 16, 1 << 16);
	int i;

	connect_both(a, b);
	send_text(a, RSB_CLASS_READ, "read 1");
	send_text(a, RSB_CLASS_READ, "read 2");
	for (i = 0; i < 6; i++)
		send_text(a, RSB_CLASS_FIFO, "write");
	ck_assert_uint_eq(carry(a, b, 9), 8);
	for (i = 0; i < 4; i++)
		check_taken(b, "write");
	check_taken(b, "read 1");
	check_taken(b, "write");
	check_taken(b, "write");
	check_taken(b, "read 2");
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

START_TEST(resends_from_the_first_message_that_was_not_received)
{
	struct rsb_stream *a = stream_new(1 << 16, 1 << 16), *b = stream_new(1 << 16, 1 << 16);
	struct rsb_frame frame;

	connect_both(a, b);
	send_text(a, RSB_CLASS_READ, "one");
	send_text(a, RSB_CLASS_READ, "two");
	send_text(a, RSB_CLASS_READ, "three");
	ck_assert_uint_eq(carry(a, b, 1), 1);
	ck_assert_int_eq(rsb_stream_output(a, &frame), 1);
	ck_assert_uint_eq(frame.a, 2);
	ck_assert(rsb_stream_waits_for_ack(a));

	/* Queued later and more urgent, but what has a number keeps it. */
	send_text(a, RSB_CLASS_FIFO, "four");
	connect_both(a, b);
	ck_assert_uint_eq(rsb_stream_acked(a), 1);
	ck_assert_uint_eq(carry(a, b, 9), 3);
	check_taken(b, "one");
	check_taken(b, "two");
	check_taken(b, "four");
	check_taken(b, "three");
	carry_ack(b, a);
	ck_assert(!rsb_stream_waits_for_ack(a));
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

START_TEST(carries_a_message_of_many_frames_and_begins_it_again)
{
	struct rsb_stream *a = stream_new(8 << 20, 8 << 20), *b = stream_new(8 << 20, 8 << 20);
	uint8_t *data = malloc(RSB_MESSAGE_MAX + 1);
	const struct rsb_msg *msg;
	size_t i, n = (RSB_MESSAGE_MAX + RSB_FRAME_PAYLOAD_MAX - 1) / RSB_FRAME_PAYLOAD_MAX;

	for (i = 0; i < RSB_MESSAGE_MAX; i++)
		data[i] = (uint8_t)(i * 7 + i / 65536);
	connect_both(a, b);
	ck_assert_int_eq(rsb_stream_send(a, RSB_CLASS_FIFO,
				 (struct rsb_bytes){ .data = data, .size = RSB_MESSAGE_MAX + 1 }),
		-EMSGSIZE);
	ck_assert_int_eq(rsb_stream_send(a, RSB_CLASS_FIFO,
				 (struct rsb_bytes){ .data = data, .size = RSB_MESSAGE_MAX }),
		0);
	ck_assert_uint_eq(carry(a, b, 5), 5);
	ck_assert_ptr_null(rsb_stream_peek(b));
	connect_both(a, b);
	ck_assert_uint_eq(carry(a, b, 2 * n), n);
	msg = rsb_stream_peek(b);
	ck_assert_uint_eq(msg->size, RSB_MESSAGE_MAX);
	ck_assert_int_eq(memcmp(msg->data, data, RSB_MESSAGE_MAX), 0);
	free(data);
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

START_TEST(counts_queued_unacknowledged_and_reserved_bytes)
{
	struct rsb_stream *a = stream_new(2 * COST(100), 1 << 16), *b = stream_new(1000, 1 << 16);
	uint8_t data[300] = { 0 };
	struct rsb_bytes hundred = { .data = data, .size = 100 };

	connect_both(a, b);
	ck_assert_uint_eq(rsb_stream_space(a), 2 * COST(100) - RSB_STREAM_COST);
	ck_assert_int_eq(
		rsb_stream_send(a, RSB_CLASS_FIFO, (struct rsb_bytes){ .data = data, .size = 300 }),
		-EMSGSIZE);
	ck_assert_int_eq(rsb_stream_reserve(a, 300), -EMSGSIZE);
	ck_assert_int_eq(rsb_stream_send(a, RSB_CLASS_FIFO, hundred), 0);
	ck_assert_uint_eq(rsb_stream_space(a), 100);
	ck_assert_int_eq(rsb_stream_reserve(a, 100), 0);
	ck_assert_uint_eq(rsb_stream_space(a), 0);
	ck_assert_int_eq(rsb_stream_send(a, RSB_CLASS_FIFO, hundred), -EAGAIN);
	ck_assert_int_eq(rsb_stream_reserve(a, 1), -EAGAIN);

	/* Sending what was reserved cannot fail for space, and gives back the rest. */
	ck_assert_int_eq(rsb_stream_send_reserved(a, RSB_CLASS_READ,
				 (struct rsb_bytes){ .data = data, .size = 10 }, 100, 0),
		0);
	ck_assert_uint_eq(rsb_stream_space(a), 100 - 10 - RSB_STREAM_COST);
	ck_assert_int_eq(rsb_stream_reserve(a, 20), 0);
	rsb_stream_unreserve(a, 20);
	ck_assert_uint_eq(carry(a, b, 9), 2);
	ck_assert_uint_eq(rsb_stream_space(a), 100 - 10 - RSB_STREAM_COST);
	carry_ack(b, a);
	ck_assert_uint_eq(rsb_stream_space(a), 2 * COST(100) - RSB_STREAM_COST);
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

START_TEST(begins_no_message_at_the_limit_until_one_is_taken)
{
	struct rsb_stream *a = stream_new(1 << 16, 1 << 16), *b = stream_new(1 << 16, COST(4));

	connect_both(a, b);
	send_text(a, RSB_CLASS_FIFO, "aaa");
	send_text(a, RSB_CLASS_FIFO, "a message that is far larger than the whole window");
	send_text(a, RSB_CLASS_FIFO, "ccc");
	ck_assert_uint_eq(carry(a, b, 9), 2);
	carry_ack(b, a);
	ck_assert_uint_eq(carry(a, b, 9), 0);
	check_taken(b, "aaa");
	carry_ack(b, a);
	ck_assert_uint_eq(carry(a, b, 9), 0);

	/* The sums go on over a new connection. */
	connect_both(a, b);
	ck_assert_uint_eq(carry(a, b, 9), 0);
	check_taken(b, "a message that is far larger than the whole window");
	connect_both(a, b);
	ck_assert_uint_eq(carry(a, b, 9), 1);
	check_taken(b, "ccc");
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

START_TEST(acknowledges_soon_but_not_each_message)
{
	struct rsb_stream *a = stream_new(1 << 20, 1 << 20), *b = stream_new(1 << 20, 4096);
	int i;

	ck_assert_int_eq(rsb_stream_ack_due(b), RSB_STREAM_ACK_NONE);
	connect_both(a, b);
	ck_assert_int_eq(rsb_stream_ack_due(b), RSB_STREAM_ACK_URGENT);
	carry_ack(b, a);
	ck_assert_int_eq(rsb_stream_ack_due(b), RSB_STREAM_ACK_NONE);
	for (i = 0; i < 15; i++)
		send_text(a, RSB_CLASS_FIFO, "");
	ck_assert_uint_eq(carry(a, b, 15), 15);
	ck_assert_int_eq(rsb_stream_ack_due(b), RSB_STREAM_ACK_LAZY);
	send_text(a, RSB_CLASS_FIFO, "");
	ck_assert_uint_eq(carry(a, b, 1), 1);
	ck_assert_int_eq(rsb_stream_ack_due(b), RSB_STREAM_ACK_URGENT);
	carry_ack(b, a);

	/* A quarter of the window was taken: the peer may be waiting for it. */
	for (i = 0; i < 16; i++)
		check_taken(b, "");
	ck_assert_int_eq(rsb_stream_ack_due(b), RSB_STREAM_ACK_LAZY);
	send_text(a, RSB_CLASS_FIFO, "");
	ck_assert_uint_eq(carry(a, b, 1), 1);
	check_taken(b, "");
	ck_assert_int_eq(rsb_stream_ack_due(b), RSB_STREAM_ACK_URGENT);
	carry_ack(b, a);

	/* And so many bytes came. */
	char text[1025];

	memset(text, 'x', 1024);
	text[1024] = '\0';
	send_text(a, RSB_CLASS_FIFO, text);
	ck_assert_uint_eq(carry(a, b, 1), 1);
	ck_assert_int_eq(rsb_stream_ack_due(b), RSB_STREAM_ACK_URGENT);
	rsb_stream_detach(b);
	ck_assert_int_eq(rsb_stream_ack_due(b), RSB_STREAM_ACK_NONE);
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

START_TEST(closes_on_messages_against_the_rules)
{
	static const uint8_t byte[1] = { 1 };
	const struct rsb_bytes one = { .data = byte, .size = 1 };
	const struct rsb_frame bad[] = {
		{ .type = RSB_FRAME_MESSAGE, .a = 0, .payload = one },
		{ .type = RSB_FRAME_MESSAGE, .a = 2, .payload = one },
		{ .type = RSB_FRAME_MESSAGE, .a = 1, .b = 1, .payload = one },
		{ .type = RSB_FRAME_MESSAGE, .a = 1, .flags = RSB_FRAME_FIN, .payload = one },
		{ .type = RSB_FRAME_MESSAGE, .a = 1, .flags = RSB_FRAME_MORE },
		{ .type = RSB_FRAME_PING, .a = 1 },
		{ .type = RSB_FRAME_ACK, .a = 0, .b = 99, .payload = one },
		{ .type = RSB_FRAME_ACK, .a = 0, .b = 99, .flags = RSB_FRAME_FIN },
		{ .type = RSB_FRAME_ACK, .a = 1, .b = 99 },
		{ .type = RSB_FRAME_ACK, .a = 0, .b = 98 },
	};
	const struct rsb_stream_state peer = { .limit = 99 };
	struct rsb_stream *stream = stream_new(1 << 20, 1 << 20);
	size_t i;

	ck_assert_int_eq(input(stream, (struct rsb_frame){ .type = RSB_FRAME_ACK }), -EBADMSG);
	ck_assert_int_eq(rsb_stream_attach(stream, &peer), 0);
	for (i = 0; i < RSB_ARRAY_SIZE(bad); i++)
		ck_assert_int_eq(rsb_stream_input(stream, &bad[i]), -EBADMSG);
	ck_assert_int_eq(input(stream, (struct rsb_frame){ .type = RSB_FRAME_MESSAGE,
					       .a = 1,
					       .flags = RSB_FRAME_MORE,
					       .payload = one }),
		0);
	ck_assert_int_eq(
		input(stream, (struct rsb_frame){ .type = RSB_FRAME_MESSAGE, .a = 1 }), -EBADMSG);
	rsb_stream_free(stream);
}
END_TEST

START_TEST(closes_on_a_message_that_grows_too_large_or_begins_beyond_the_limit)
{
	static const uint8_t data[RSB_FRAME_PAYLOAD_MAX];
	const struct rsb_frame more = {
		.type = RSB_FRAME_MESSAGE,
		.flags = RSB_FRAME_MORE,
		.a = 1,
		.payload = { .data = data, .size = sizeof(data) },
	};
	const struct rsb_stream_state peer = { .limit = 99 };
	struct rsb_stream *stream = stream_new(1 << 20, 1);
	size_t i;

	ck_assert_int_eq(rsb_stream_attach(stream, &peer), 0);
	for (i = 0; i < RSB_MESSAGE_MAX / sizeof(data); i++)
		ck_assert_int_eq(rsb_stream_input(stream, &more), 0);
	ck_assert_int_eq(rsb_stream_input(stream, &more), -EBADMSG);
	ck_assert_int_eq(rsb_stream_attach(stream, &peer), 0);
	ck_assert_int_eq(input(stream, (struct rsb_frame){ .type = RSB_FRAME_MESSAGE, .a = 1 }), 0);
	ck_assert_int_eq(
		input(stream, (struct rsb_frame){ .type = RSB_FRAME_MESSAGE, .a = 2 }), -EBADMSG);
	rsb_stream_free(stream);
}
END_TEST

START_TEST(accepts_no_acknowledgement_of_what_is_not_whole_on_the_wire)
{
	struct rsb_stream *a = stream_new(1 << 20, 1 << 20), *b = stream_new(1 << 20, 1 << 20);
	static const uint8_t data[RSB_FRAME_PAYLOAD_MAX + 1];
	struct rsb_frame frame;

	connect_both(a, b);
	ck_assert_int_eq(rsb_stream_send(a, RSB_CLASS_FIFO,
				 (struct rsb_bytes){ .data = data, .size = sizeof(data) }),
		0);
	ck_assert_int_eq(rsb_stream_output(a, &frame), 1);
	ck_assert_int_eq(
		input(a, (struct rsb_frame){ .type = RSB_FRAME_ACK, .a = 1, .b = 2 << 20 }),
		-EBADMSG);
	ck_assert_int_eq(rsb_stream_output(a, &frame), 1);
	ck_assert_int_eq(
		input(a, (struct rsb_frame){ .type = RSB_FRAME_ACK, .a = 1, .b = 2 << 20 }), 0);
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

START_TEST(tells_a_rolled_back_peer_by_its_counts)
{
	struct rsb_stream *a = stream_new(1 << 20, 1 << 20), *b = stream_new(1 << 20, 1 << 20);
	struct rsb_stream_state was, now, state;

	connect_both(a, b);
	rsb_stream_state(b, &was);
	send_text(a, RSB_CLASS_FIFO, "one");
	send_text(b, RSB_CLASS_FIFO, "two");
	(void)carry(a, b, 9);
	(void)carry(b, a, 9);
	check_taken(b, "one");
	carry_ack(b, a);
	rsb_stream_state(b, &now);
	/* It holds less than it acknowledged. */
	ck_assert_int_eq(rsb_stream_attach(a, &was), -ESTALE);
	/* It acknowledges more than was ever sent, or we hold less than it knows us to have. */
	state = now;
	state.received = 2;
	ck_assert_int_eq(rsb_stream_attach(a, &state), -ESTALE);
	state = now;
	state.acked = 2;
	ck_assert_int_eq(rsb_stream_attach(a, &state), -ESTALE);
	/* Its limit went back. */
	state = now;
	state.limit--;
	ck_assert_int_eq(rsb_stream_attach(a, &state), -ESTALE);
	ck_assert_int_eq(rsb_stream_attach(a, &now), 0);
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

START_TEST(tells_a_peer_with_another_history_of_the_same_length)
{
	struct rsb_stream *a = stream_new(1 << 20, 1 << 20), *b = stream_new(1 << 20, 1 << 20);
	struct rsb_stream *c = stream_new(1 << 20, 1 << 20);
	struct rsb_stream_state of_b, of_c;

	connect_both(a, b);
	connect_both(b, c);
	rsb_stream_state(c, &of_c);
	ck_assert_int_eq(rsb_stream_attach(a, &of_c), 0);
	send_text(a, RSB_CLASS_FIFO, "one");
	(void)carry(a, b, 9);
	/* b rolled back to before "one", and c is what it did instead. */
	send_text(b, RSB_CLASS_FIFO, "x");
	(void)carry(b, c, 9);
	rsb_stream_state(c, &of_c);
	ck_assert_uint_eq(of_c.received, 1);
	ck_assert_int_eq(rsb_stream_attach(a, &of_c), -ESTALE);
	rsb_stream_state(b, &of_b);
	of_b.acked = 0;
	ck_assert_int_eq(rsb_stream_attach(a, &of_b), 0);
	/* A peer that says no digest is believed. */
	of_c.digest = 0;
	ck_assert_int_eq(rsb_stream_attach(a, &of_c), 0);
	rsb_stream_free(a);
	rsb_stream_free(b);
	rsb_stream_free(c);
}
END_TEST

/* "d..." goes, of others the first byte stays. */
static size_t
edit(rsb_unused void *arg, uint8_t *data, rsb_unused size_t size)
{
	return data[0] == 'd' ? 0 : 1;
}

START_TEST(edits_what_has_no_number_yet)
{
	struct rsb_stream *a = stream_new(2 * COST(6), 1 << 20);
	struct rsb_stream *b = stream_new(1 << 20, 1 << 20);

	connect_both(a, b);
	send_text(a, RSB_CLASS_READ, "dsent");
	ck_assert_uint_eq(carry(a, b, 1), 1);
	send_text(a, RSB_CLASS_FIFO, "drop");
	rsb_stream_edit(a, edit, NULL);
	ck_assert_uint_eq(rsb_stream_space(a), 7);
	send_text(a, RSB_CLASS_FIFO, "skip");
	rsb_stream_edit(a, edit, NULL);
	connect_both(a, b);
	ck_assert_uint_eq(carry(a, b, 9), 1);
	free(rsb_stream_take(b));
	ck_assert_uint_eq(rsb_stream_peek(b)->size, 1);
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		refuses_a_stream_without_room,
		delivers_in_the_order_of_sending,
		lets_mutations_pass_reads_but_not_starve_them,
		resends_from_the_first_message_that_was_not_received,
		carries_a_message_of_many_frames_and_begins_it_again,
		counts_queued_unacknowledged_and_reserved_bytes,
		begins_no_message_at_the_limit_until_one_is_taken,
		acknowledges_soon_but_not_each_message,
		closes_on_messages_against_the_rules,
		closes_on_a_message_that_grows_too_large_or_begins_beyond_the_limit,
		accepts_no_acknowledgement_of_what_is_not_whole_on_the_wire,
		tells_a_rolled_back_peer_by_its_counts,
		tells_a_peer_with_another_history_of_the_same_length,
		edits_what_has_no_number_yet,
	};

	return unit_run("stream", tests, RSB_ARRAY_SIZE(tests));
}
