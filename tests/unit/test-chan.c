/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "tests/unit/chan.h"
#include "tests/unit/unit.h"

START_TEST(carries_bytes_and_the_end)
{
	setup();
	open_down(1 << 20, 0);
	ck_assert_uint_eq(rsb_chan_room(sidecar.chans, DOWN), 1 << 20);
	ck_assert_uint_eq(write_pattern(&sidecar, DOWN, 100000), 100000);
	ck_assert_uint_eq(rsb_chan_room(sidecar.chans, DOWN), (1 << 20) - 100000);
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 2);
	ck_assert_int_eq(rsb_chan_finish(sidecar.chans, DOWN), 0);
	ck_assert_int_eq(rsb_chan_finish(sidecar.chans, DOWN), -EPIPE);
	ck_assert_int_eq(rsb_chan_write(sidecar.chans, DOWN, rsb_bytes_str("x")), -EPIPE);
	ck_assert_uint_eq(rsb_chan_room(sidecar.chans, DOWN), 0);
	ck_assert(!rsb_chan_drained(sidecar.chans, DOWN));
	/* An end without bytes. */
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 1);
	ck_assert_uint_eq(host.n_fin, 1);
	check_pattern(&host, 100000);
	ck_assert_uint_eq(rsb_chan_offset(host.chans, DOWN), 100000);
	ck_assert_uint_eq(rsb_chan_offset(sidecar.chans, DOWN), 100000);
	settle();
	ck_assert(rsb_chan_drained(sidecar.chans, DOWN));
	ck_assert_uint_eq(sidecar.n_writable, 1);
	ck_assert_uint_eq(rsb_chans_delivered(sidecar.chans), 100000);
	ck_assert_uint_eq(rsb_chans_in_flight(sidecar.chans), 0);
	teardown();
}
END_TEST

START_TEST(waits_for_the_receiver_when_the_host_sends)
{
	setup();
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, UP, 1 << 20), 0);
	ck_assert_uint_eq(write_pattern(&host, UP, 10), 10);
	ck_assert_int_eq(rsb_chan_finish(host.chans, UP), 0);
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 0);
	reconnect();
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 0);
	ck_assert_int_eq(rsb_chan_open_receiver(sidecar.chans, UP, 0), 0);
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 1);
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	check_pattern(&sidecar, 10);
	ck_assert_uint_eq(sidecar.n_fin, 1);
	teardown();
}
END_TEST

START_TEST(ignores_the_credit_of_a_receiver_that_is_first)
{
	setup();
	ck_assert_int_eq(rsb_chan_open_receiver(host.chans, DOWN, 0), 0);
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 0);
	ck_assert_int_eq(rsb_chan_open_sender(sidecar.chans, DOWN, 100), 0);
	ck_assert_uint_eq(write_pattern(&sidecar, DOWN, 10), 10);
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 1);
	check_pattern(&host, 10);
	teardown();
}
END_TEST

START_TEST(stops_at_the_window_of_a_reader_that_does_not_consume)
{
	setup();
	host.consumes = false;
	open_down(1 << 20, 1 << 20);
	ck_assert_uint_eq(write_pattern(&sidecar, DOWN, 1 << 20), 1 << 20);
	ck_assert_uint_eq(write_pattern(&sidecar, DOWN, 1), 0);
	settle();
	ck_assert_uint_eq(rsb_buf_len(&host.got), RSB_CHAN_WINDOW);
	/* What was received has left the buffer, so a writer may go on into it. */
	ck_assert_uint_eq(sidecar.n_writable, 1);
	ck_assert_uint_eq(rsb_chan_room(sidecar.chans, DOWN), RSB_CHAN_WINDOW);
	rsb_chan_consume(host.chans, DOWN, 1000);
	settle();
	ck_assert_uint_eq(rsb_buf_len(&host.got), RSB_CHAN_WINDOW + 1000);
	/* An end needs no credit, but it comes after all bytes. */
	ck_assert_int_eq(rsb_chan_finish(sidecar.chans, DOWN), 0);
	settle();
	ck_assert_uint_eq(host.n_fin, 0);
	host.consumes = true;
	rsb_chan_consume(host.chans, DOWN, RSB_CHAN_WINDOW);
	settle();
	check_pattern(&host, 1 << 20);
	ck_assert_uint_eq(host.n_fin, 1);
	/* Consumption after the end has no news for anybody. */
	rsb_chan_consume(host.chans, DOWN, 0);
	ck_assert_uint_eq(carry_urge(&host, NULL, RSB_CHANS_CREDIT, 9), 0);
	teardown();
}
END_TEST

START_TEST(doubles_the_window_while_the_reader_keeps_up)
{
	struct rsb_frame frame;
	uint64_t limit = 0;

	setup();
	open_down(2 << 20, 1 << 20);
	while (rsb_chan_offset(sidecar.chans, DOWN) < 8u << 20) {
		(void)write_pattern(&sidecar, DOWN, 256 << 10);
		(void)carry(&sidecar, &host, 9999);
		while (rsb_chans_output(host.chans, RSB_CHANS_CREDIT, 0, &frame) > 0) {
			limit = frame.b;
			ck_assert_int_eq(rsb_chans_input(sidecar.chans, &frame), 0);
		}
		host.got.off = host.got.size = 0;
	}
	ck_assert_uint_eq(limit - rsb_chan_offset(host.chans, DOWN), 1 << 20);
	teardown();
}
END_TEST

START_TEST(sends_credit_at_once_only_when_it_matters)
{
	static const uint64_t others[] = { DOWN + 4, DOWN + 8, DOWN + 12 };
	size_t i;

	setup();
	open_down(1 << 20, 0);
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	ck_assert(!rsb_chans_credit_due(host.chans));
	(void)write_pattern(&sidecar, DOWN, 100);
	(void)carry(&sidecar, &host, 9);
	ck_assert(rsb_chans_credit_due(host.chans));
	ck_assert_uint_eq(carry_urge(&host, &sidecar, RSB_CHANS_URGENT, 9), 0);
	ck_assert_uint_eq(carry_urge(&host, &sidecar, RSB_CHANS_STREAM, 9), 0);
	ck_assert_uint_eq(carry_urge(&host, &sidecar, RSB_CHANS_CREDIT, 9), 1);
	ck_assert_uint_eq(rsb_chans_delivered(sidecar.chans), 100);

	/* Much on one channel, or a little on many. */
	(void)write_pattern(&sidecar, DOWN, 64 << 10);
	(void)carry(&sidecar, &host, 9);
	ck_assert_uint_eq(carry_urge(&host, &sidecar, RSB_CHANS_URGENT, 9), 1);
	for (i = 0; i < RSB_ARRAY_SIZE(others); i++) {
		ck_assert_int_eq(rsb_chan_open_receiver(host.chans, others[i], 0), 0);
		ck_assert_int_eq(rsb_chan_open_sender(sidecar.chans, others[i], 1 << 20), 0);
		(void)carry_urge(&host, &sidecar, RSB_CHANS_URGENT, 9);
		(void)write_pattern(&sidecar, others[i], 22 << 10);
		(void)carry(&sidecar, &host, 1);
	}
	ck_assert_uint_ge(carry_urge(&host, &sidecar, RSB_CHANS_URGENT, 9), 1);
	rsb_chan_close(host.chans, others[1]);
	rsb_chan_close(host.chans, others[2]);
	settle();
	ck_assert_uint_eq(sidecar.n_reset, 2);
	teardown();
}
END_TEST

START_TEST(takes_turns_and_respects_the_total_in_flight)
{
	struct rsb_frame frame;

	setup();
	open_down(1 << 20, 0);
	ck_assert_int_eq(rsb_chan_open_receiver(host.chans, DOWN + 4, 0), 0);
	ck_assert_int_eq(rsb_chan_open_sender(sidecar.chans, DOWN + 4, 1 << 20), 0);
	(void)write_pattern(&sidecar, DOWN, 200 << 10);
	(void)write_pattern(&sidecar, DOWN + 4, 200 << 10);
	ck_assert_int_eq(rsb_chans_output(sidecar.chans, RSB_CHANS_STREAM, 100000, &frame), 1);
	ck_assert_uint_eq(frame.a, DOWN);
	ck_assert_int_eq(rsb_chans_output(sidecar.chans, RSB_CHANS_STREAM, 100000, &frame), 1);
	ck_assert_uint_eq(frame.a, DOWN + 4);
	ck_assert_uint_eq(rsb_chans_in_flight(sidecar.chans), 2 * RSB_FRAME_PAYLOAD_MAX);
	ck_assert_int_eq(rsb_chans_output(sidecar.chans, RSB_CHANS_STREAM, 100000, &frame), 0);
	ck_assert_int_eq(rsb_chans_output(sidecar.chans, RSB_CHANS_STREAM, 200000, &frame), 1);
	ck_assert_uint_eq(frame.a, DOWN);
	/* What a closed channel had on its way does not count any more. */
	rsb_chan_close(sidecar.chans, DOWN);
	ck_assert_uint_eq(rsb_chans_in_flight(sidecar.chans), RSB_FRAME_PAYLOAD_MAX);
	teardown();
}
END_TEST

START_TEST(goes_on_where_the_receiver_is)
{
	setup();
	open_down(1 << 20, 0);
	(void)carry(&host, &sidecar, 9);
	(void)write_pattern(&sidecar, DOWN, 150000);
	ck_assert_int_eq(rsb_chan_finish(sidecar.chans, DOWN), 0);
	ck_assert_uint_eq(carry(&sidecar, &host, 1), 1);
	ck_assert_uint_eq(carry(&sidecar, NULL, 9), 2);
	cut();
	(void)carry(&sidecar, NULL, 9);
	ck_assert_int_eq(input(&host, stream(DOWN, 0, "x", 0)), -EBADMSG);
	reconnect();
	/* Nothing but the question where to go on, until the receiver has said it. */
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 1);
	settle();
	check_pattern(&host, 150000);
	ck_assert_uint_eq(host.n_fin, 1);
	reconnect();
	settle();
	ck_assert_uint_eq(host.n_fin, 1);
	ck_assert(rsb_chan_drained(sidecar.chans, DOWN));
	teardown();
}
END_TEST

START_TEST(asks_nothing_when_the_credit_is_already_there)
{
	setup();
	open_down(1 << 20, 0);
	(void)write_pattern(&sidecar, DOWN, 10);
	settle();
	reconnect();
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 0);
	teardown();
}
END_TEST

START_TEST(opens_while_the_connection_is_down)
{
	setup();
	cut();
	open_down(1 << 20, 0);
	(void)write_pattern(&sidecar, DOWN, 10);
	reconnect();
	settle();
	check_pattern(&host, 10);
	teardown();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		carries_bytes_and_the_end,
		waits_for_the_receiver_when_the_host_sends,
		ignores_the_credit_of_a_receiver_that_is_first,
		stops_at_the_window_of_a_reader_that_does_not_consume,
		doubles_the_window_while_the_reader_keeps_up,
		sends_credit_at_once_only_when_it_matters,
		takes_turns_and_respects_the_total_in_flight,
		goes_on_where_the_receiver_is,
		asks_nothing_when_the_credit_is_already_there,
		opens_while_the_connection_is_down,
	};

	return unit_run("chan", tests, RSB_ARRAY_SIZE(tests));
}
