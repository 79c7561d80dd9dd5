/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "proto/stream.h"
#include "tests/unit/unit.h"

static struct rsb_stream *
stream_new(void)
{
	struct rsb_stream *stream;

	ck_assert_int_eq(rsb_stream_new(1000, 1000, &stream), 0);
	return stream;
}

static void
connect_both(struct rsb_stream *a, struct rsb_stream *b)
{
	struct rsb_stream_state of_a, of_b;

	rsb_stream_state(a, &of_a);
	rsb_stream_state(b, &of_b);
	ck_assert_int_eq(rsb_stream_attach(a, &of_b), 0);
	ck_assert_int_eq(rsb_stream_attach(b, &of_a), 0);
}

static void
send_marked(struct rsb_stream *stream, enum rsb_class class, uint64_t mark)
{
	ck_assert_int_eq(rsb_stream_reserve(stream, 10), 0);
	ck_assert_int_eq(
		rsb_stream_send_reserved(stream, class, rsb_bytes_str("text"), 10, mark), 0);
}

/* The next message, and the word that it arrived. */
static void
carry(struct rsb_stream *from, struct rsb_stream *to)
{
	struct rsb_frame frame;

	ck_assert_int_eq(rsb_stream_output(from, &frame), 1);
	ck_assert_int_eq(rsb_stream_input(to, &frame), 0);
	rsb_stream_output_ack(to, &frame);
	ck_assert_int_eq(rsb_stream_input(from, &frame), 0);
}

static void
see_nothing(void *arg rsb_unused, struct rsb_bytes msg rsb_unused)
{
}

START_TEST(knows_the_mark_of_what_arrived)
{
	struct rsb_stream *a = stream_new(), *b = stream_new();
	struct rsb_frame lost;

	connect_both(a, b);
	send_marked(a, RSB_CLASS_FIFO, 7);
	send_marked(a, RSB_CLASS_READ, 0);
	send_marked(a, RSB_CLASS_FIFO, 9);
	ck_assert_uint_eq(rsb_stream_acked_mark(a), 0);
	carry(a, b);
	ck_assert_uint_eq(rsb_stream_acked_mark(a), 7);
	ck_assert_int_eq(rsb_stream_output(a, &lost), 1);
	ck_assert_uint_eq(rsb_stream_acked_mark(a), 7);
	/* It is kept when the stream begins anew, and so is that of what is sent again. */
	rsb_stream_restart(a, see_nothing, NULL);
	rsb_stream_free(b);
	b = stream_new();
	connect_both(a, b);
	ck_assert_uint_eq(rsb_stream_acked_mark(a), 7);
	carry(a, b);
	ck_assert_uint_eq(rsb_stream_acked_mark(a), 9);
	carry(a, b);
	ck_assert_uint_eq(rsb_stream_acked_mark(a), 9);
	rsb_stream_free(a);
	rsb_stream_free(b);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { knows_the_mark_of_what_arrived };

	return unit_run("stream-mark", tests, RSB_ARRAY_SIZE(tests));
}
