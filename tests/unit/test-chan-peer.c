/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "proto/errmap.h"
#include "proto/roster.h"
#include "tests/unit/chan.h"
#include "tests/unit/unit.h"

START_TEST(stops_a_sender_whose_receiver_gave_up)
{
	setup();
	open_down(1 << 20, 0);
	(void)write_pattern(&sidecar, DOWN, 10);
	rsb_chan_reset(host.chans, DOWN, -ECANCELED);
	rsb_chan_reset(host.chans, DOWN, -EIO);
	rsb_chan_close(host.chans, DOWN);
	/* Its bytes cross the RESET and are no reason for a second one. */
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 1);
	ck_assert_uint_eq(rsb_buf_len(&host.got), 0);
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	ck_assert_uint_eq(sidecar.n_reset, 1);
	ck_assert_int_eq(sidecar.reset, -ECANCELED);
	ck_assert_int_eq(rsb_chan_write(sidecar.chans, DOWN, rsb_bytes_str("x")), -EPIPE);
	ck_assert(rsb_chan_drained(sidecar.chans, DOWN));
	ck_assert_int_eq(rsb_chan_open_receiver(host.chans, DOWN, 0), -EEXIST);
	rsb_chans_settle(host.chans, rsb_chans_mark(host.chans));
	ck_assert_uint_eq(rsb_chans_unsettled(host.chans), 0);
	teardown();
}
END_TEST

START_TEST(tells_a_receiver_that_its_sender_gave_up)
{
	setup();
	open_down(1 << 20, 0);
	(void)write_pattern(&sidecar, DOWN, 10);
	(void)carry(&sidecar, &host, 9);
	rsb_chan_reset(sidecar.chans, DOWN, -EIO);
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	settle();
	ck_assert_uint_eq(host.n_reset, 1);
	ck_assert_int_eq(host.reset, -EIO);
	/* Both at once: nobody is told about a channel that he gave up himself. */
	ck_assert_int_eq(rsb_chan_open_receiver(host.chans, DOWN + 4, 0), 0);
	ck_assert_int_eq(rsb_chan_open_sender(sidecar.chans, DOWN + 4, 10), 0);
	rsb_chan_reset(host.chans, DOWN + 4, -EIO);
	rsb_chan_reset(sidecar.chans, DOWN + 4, -EIO);
	settle();
	ck_assert_uint_eq(host.n_reset, 1);
	ck_assert_uint_eq(sidecar.n_reset, 0);
	teardown();
}
END_TEST

START_TEST(repeats_a_reset_until_it_is_settled)
{
	uint64_t mark;

	setup();
	open_down(1 << 20, 0);
	rsb_chan_reset(sidecar.chans, DOWN, -EIO);
	ck_assert_uint_eq(carry(&sidecar, NULL, 9), 1);
	mark = rsb_chans_mark(sidecar.chans);
	reconnect();
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 1);
	ck_assert_int_eq(host.reset, -EIO);
	rsb_chans_settle(sidecar.chans, mark);
	ck_assert_uint_eq(rsb_chans_unsettled(sidecar.chans), 1);
	rsb_chans_settle(sidecar.chans, rsb_chans_mark(sidecar.chans));
	ck_assert_uint_eq(rsb_chans_unsettled(sidecar.chans), 0);
	reconnect();
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 0);
	teardown();
}
END_TEST

START_TEST(tells_the_sender_that_all_arrived_after_the_receiver_closed)
{
	setup();
	host.closes_at_fin = true;
	open_down(1 << 20, 0);
	(void)write_pattern(&sidecar, DOWN, 10);
	ck_assert_int_eq(rsb_chan_finish(sidecar.chans, DOWN), 0);
	(void)carry(&sidecar, &host, 9);
	ck_assert_uint_eq(carry(&host, NULL, 9), 1);
	/* The last CREDIT was lost; the next connection brings it again. */
	reconnect();
	settle();
	ck_assert(rsb_chan_drained(sidecar.chans, DOWN));
	ck_assert_uint_eq(sidecar.n_reset, 0);
	teardown();
}
END_TEST

START_TEST(says_the_last_credit_once_when_it_closes_later)
{
	setup();
	open_down(1 << 20, 0);
	ck_assert_int_eq(rsb_chan_finish(sidecar.chans, DOWN), 0);
	settle();
	ck_assert(rsb_chan_drained(sidecar.chans, DOWN));
	/* Too late to stop anything. */
	rsb_chan_reset(host.chans, DOWN, -EIO);
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 0);
	ck_assert_uint_eq(rsb_chans_unsettled(host.chans), 1);
	/* The sender has forgotten it, and says so when it is asked. */
	rsb_chan_close(sidecar.chans, DOWN);
	reconnect();
	settle();
	ck_assert_uint_eq(rsb_chans_unsettled(host.chans), 0);
	ck_assert_uint_eq(host.n_reset, 0);
	teardown();
}
END_TEST

/* Its owner may keep it for as long as it likes; the receiver was forgotten long ago. */
START_TEST(asks_nothing_once_all_arrived)
{
	setup();
	sidecar.closes_at_fin = true;
	ck_assert_int_eq(rsb_chan_open_receiver(sidecar.chans, UP, 0), 0);
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, UP, 10), 0);
	(void)write_pattern(&host, UP, 10);
	ck_assert_int_eq(rsb_chan_finish(host.chans, UP), 0);
	settle();
	ck_assert(rsb_chan_drained(host.chans, UP));
	rsb_chans_settle(sidecar.chans, rsb_chans_mark(sidecar.chans));
	ck_assert_uint_eq(rsb_chans_unsettled(sidecar.chans), 0);
	reconnect();
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 0);
	ck_assert_uint_eq(carry(&sidecar, &host, 9), 0);
	ck_assert(rsb_chan_drained(host.chans, UP));
	rsb_chan_close(host.chans, UP);
	ck_assert_uint_eq(rsb_chans_unsettled(host.chans), 0);
	teardown();
}
END_TEST

START_TEST(answers_frames_of_unknown_channels)
{
	struct rsb_frame frame;

	setup();
	ck_assert_int_eq(input(&host, stream(DOWN, 0, "x", 0)), 0);
	ck_assert_int_eq(input(&host, stream(DOWN, 1, "x", 0)), 0);
	ck_assert_int_eq(input(&host, credit(UP, 1, 9)), 0);
	ck_assert_int_eq(input(&host, credit(UP, 2, 9)), 0);
	ck_assert_int_eq(input(&host, credit(DOWN + 4, 0, 9)), 0);
	ck_assert_int_eq(input(&host, (struct rsb_frame){ .type = RSB_FRAME_RESET, .a = DOWN }), 0);
	ck_assert_int_eq(
		input(&host, (struct rsb_frame){ .type = RSB_FRAME_RESET, .a = UP + 4 }), 0);
	ck_assert_int_eq(rsb_chans_output(host.chans, RSB_CHANS_URGENT, 0, &frame), 1);
	ck_assert_uint_eq(frame.type, RSB_FRAME_RESET);
	ck_assert_uint_eq(frame.a, DOWN);
	ck_assert_int_eq(rsb_errmap_from_wire(frame.b), -ESTALE);
	ck_assert_int_eq(rsb_chans_output(host.chans, RSB_CHANS_URGENT, 0, &frame), 1);
	ck_assert_uint_eq(frame.a, UP);
	ck_assert_int_eq(rsb_chans_output(host.chans, RSB_CHANS_URGENT, 0, &frame), 0);
	/* A refusal is not repeated: the peer will ask again if it has to. */
	ck_assert_int_eq(input(&host, stream(DOWN, 1, "x", 0)), 0);
	reconnect();
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 0);
	rsb_chan_close(host.chans, DOWN);
	rsb_chan_reset(host.chans, DOWN, -EIO);
	rsb_chan_consume(host.chans, DOWN, 1);
	ck_assert_uint_eq(rsb_chan_offset(host.chans, DOWN), 0);
	ck_assert_uint_eq(rsb_chan_room(host.chans, DOWN), 0);
	teardown();
}
END_TEST

START_TEST(ends_the_other_end_when_one_is_closed)
{
	setup();
	open_down(1 << 20, 0);
	(void)write_pattern(&sidecar, DOWN, 10);
	settle();
	rsb_chan_close(sidecar.chans, DOWN);
	settle();
	ck_assert_int_eq(host.reset, -EPIPE);
	ck_assert_int_eq(rsb_chan_open_receiver(sidecar.chans, UP, 0), 0);
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, UP, 10), 0);
	settle();
	rsb_chan_close(sidecar.chans, UP);
	host.reset = 0;
	reconnect();
	settle();
	ck_assert_int_eq(host.reset, -EPIPE);
	teardown();
}
END_TEST

START_TEST(tells_a_receiver_that_comes_after_its_sender_gave_up)
{
	setup();
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, UP, 10), 0);
	rsb_chan_reset(host.chans, UP, -EIO);
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	ck_assert_int_eq(rsb_chan_open_receiver(sidecar.chans, UP, 0), 0);
	settle();
	ck_assert_int_eq(sidecar.reset, -EIO);
	/* Long after. */
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, UP + 4, 10), 0);
	rsb_chan_reset(host.chans, UP + 4, -EPERM);
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	rsb_chans_settle(host.chans, rsb_chans_mark(host.chans));
	ck_assert_uint_eq(rsb_chans_unsettled(host.chans), 0);
	reconnect();
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	ck_assert_int_eq(rsb_chan_open_receiver(sidecar.chans, UP + 4, 0), 0);
	settle();
	ck_assert_int_eq(sidecar.reset, -EPERM);
	rsb_chans_settle(host.chans, rsb_chans_mark(host.chans));
	reconnect();
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 0);
	teardown();
}
END_TEST

START_TEST(tells_a_sender_that_comes_after_its_receiver_gave_up)
{
	setup();
	ck_assert_int_eq(rsb_chan_open_receiver(host.chans, DOWN, 0), 0);
	rsb_chan_reset(host.chans, DOWN, -EIO);
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	rsb_chans_settle(host.chans, rsb_chans_mark(host.chans));
	ck_assert_int_eq(rsb_chan_open_sender(sidecar.chans, DOWN, 10), 0);
	ck_assert_uint_eq(write_pattern(&sidecar, DOWN, 10), 10);
	settle();
	ck_assert_int_eq(sidecar.reset, -EIO);
	teardown();
}
END_TEST

START_TEST(keeps_the_resets_of_so_many_receivers_that_never_came)
{
	uint64_t proc;

	setup();
	for (proc = 100; proc < 100 + 10000; proc++) {
		ck_assert_int_eq(rsb_chan_open_sender(host.chans, RSB_CHAN_STDIN(proc), 10), 0);
		rsb_chan_close(host.chans, RSB_CHAN_STDIN(proc));
		ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	}
	reconnect();
	ck_assert_uint_eq(carry(&host, &sidecar, SIZE_MAX), RSB_ROSTER_EARLY_MAX);
	teardown();
}
END_TEST

/* The far end is a copy that was made before the channels were. */
static void
roll_back_sidecar(void)
{
	rsb_chans_free(sidecar.chans);
	ck_assert_int_eq(rsb_chans_new(&ops, &sidecar, &sidecar.chans), 0);
	reconnect();
}

START_TEST(tells_a_rolled_back_peer_by_the_channels_it_does_not_know)
{
	struct rsb_frame frame;

	setup();
	open_down(1 << 20, 0);
	(void)write_pattern(&sidecar, DOWN, 10);
	settle();
	roll_back_sidecar();
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 1);
	ck_assert_int_eq(rsb_chans_output(sidecar.chans, RSB_CHANS_URGENT, 0, &frame), 1);
	ck_assert_int_eq(rsb_chans_input(host.chans, &frame), -ESTALE);
	rsb_chan_close(host.chans, DOWN);

	ck_assert_int_eq(rsb_chan_open_receiver(sidecar.chans, UP, 0), 0);
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, UP, 10), 0);
	settle();
	roll_back_sidecar();
	ck_assert_uint_eq(carry(&host, &sidecar, 9), 2);
	ck_assert_int_eq(rsb_chans_output(sidecar.chans, RSB_CHANS_URGENT, 0, &frame), 1);
	ck_assert_int_eq(rsb_chans_input(host.chans, &frame), -ESTALE);
	teardown();
}
END_TEST

START_TEST(closes_on_frames_against_the_rules)
{
	const struct rsb_bytes byte = rsb_bytes_str("x");
	const struct {
		struct rsb_frame frame;
		int r;
	} cases[] = {
		{ stream(DOWN, 1, "x", 0), -EBADMSG },
		{ stream(DOWN, 0, "x", RSB_FRAME_MORE), -EBADMSG },
		{ stream(UP, 0, "x", 0), -EBADMSG },
		{ stream(DOWN, 99, "", 0), 0 },
		{ { .type = RSB_FRAME_CREDIT, .a = UP, .payload = byte }, -EBADMSG },
		{ { .type = RSB_FRAME_RESET, .a = UP, .payload = byte }, -EBADMSG },
		{ { .type = RSB_FRAME_RESET, .a = UP, .flags = RSB_FRAME_FIN }, -EBADMSG },
		{ { .type = RSB_FRAME_PING }, -EBADMSG },
		{ stream(DOWN, 0, "x", RSB_FRAME_FIN), 0 },
		{ stream(DOWN, 1, "x", 0), -EBADMSG },
		{ stream(DOWN, 1, "", RSB_FRAME_FIN), -EBADMSG },
		{ { .type = RSB_FRAME_RESET, .a = DOWN, .b = 5 }, 0 },
	};
	struct rsb_frame frame;
	size_t i;

	setup();
	ck_assert_int_eq(rsb_chan_open_receiver(host.chans, DOWN, 0), 0);
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, UP, 100), 0);
	for (i = 0; i < RSB_ARRAY_SIZE(cases); i++)
		ck_assert_int_eq(rsb_chans_input(host.chans, &cases[i].frame), cases[i].r);
	ck_assert_uint_eq(host.n_reset, 0);
	frame = credit(UP, 0, 9);
	frame.flags = RSB_FRAME_FIN;
	ck_assert_int_eq(rsb_chans_input(host.chans, &frame), -EBADMSG);
	ck_assert_int_eq(input(&host, credit(DOWN, 0, 9)), -EBADMSG);
	teardown();
}
END_TEST

START_TEST(closes_on_bytes_beyond_the_window)
{
	static const uint8_t data[RSB_FRAME_PAYLOAD_MAX];
	struct rsb_frame frame = {
		.type = RSB_FRAME_STREAM,
		.a = DOWN,
		.payload = { .data = data, .size = sizeof(data) },
	};

	setup();
	host.consumes = false;
	ck_assert_int_eq(rsb_chan_open_receiver(host.chans, DOWN, 0), 0);
	while (frame.b + sizeof(data) <= RSB_CHAN_WINDOW) {
		ck_assert_int_eq(rsb_chans_input(host.chans, &frame), 0);
		frame.b += sizeof(data);
	}
	ck_assert_int_eq(rsb_chans_input(host.chans, &frame), -EBADMSG);
	teardown();
}
END_TEST

START_TEST(closes_on_credit_that_cannot_be)
{
	struct rsb_frame frame;

	setup();
	ck_assert_int_eq(rsb_chan_open_sender(sidecar.chans, DOWN, 100), 0);
	(void)write_pattern(&sidecar, DOWN, 10);
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 0, RSB_CHAN_WINDOW)), 0);
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 0, RSB_CHAN_WINDOW - 1)), -EBADMSG);
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 1, RSB_CHAN_WINDOW)), -EBADMSG);
	ck_assert_int_eq(rsb_chans_output(sidecar.chans, RSB_CHANS_STREAM, NO_MAX, &frame), 1);
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 11, RSB_CHAN_WINDOW)), -EBADMSG);
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 4, RSB_CHAN_WINDOW)), 0);
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 3, RSB_CHAN_WINDOW)), -EBADMSG);
	ck_assert_int_eq(rsb_chan_finish(sidecar.chans, DOWN), 0);
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 11, RSB_CHAN_WINDOW)), -EBADMSG);
	ck_assert_int_eq(rsb_chans_output(sidecar.chans, RSB_CHANS_STREAM, NO_MAX, &frame), 1);
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 11, RSB_CHAN_WINDOW)), 0);
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 10, RSB_CHAN_WINDOW)), -EBADMSG);
	/* On a new connection the same means that one end was rolled back. */
	reconnect();
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 10, RSB_CHAN_WINDOW)), -ESTALE);
	ck_assert_int_eq(input(&sidecar, credit(DOWN, 12, RSB_CHAN_WINDOW)), -ESTALE);
	teardown();
}
END_TEST

START_TEST(bounds_the_table_and_what_a_peer_can_put_into_it)
{
	uint64_t chan;

	setup();
	for (chan = 1; chan <= RSB_CHANS_MAX; chan++)
		ck_assert_int_eq(rsb_chan_open_receiver(host.chans, chan, 0), 0);
	ck_assert_int_eq(rsb_chan_open_receiver(host.chans, chan, 0), -EMFILE);
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, chan, 1), -EMFILE);
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, 1, 1), -EEXIST);
	/* Closed but not settled counts. */
	rsb_chan_reset(host.chans, UP, -EIO);
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, chan, 1), -EMFILE);
	ck_assert_uint_gt(carry(&host, NULL, SIZE_MAX), 0);
	rsb_chans_settle(host.chans, rsb_chans_mark(host.chans));
	ck_assert_int_eq(rsb_chan_open_sender(host.chans, chan, 1), 0);
	for (chan = 0; chan < RSB_CHANS_MAX; chan++)
		ck_assert_int_eq(input(&host, stream(1000000 + chan, 0, "x", 0)), 0);
	ck_assert_int_eq(input(&host, stream(1000000 + chan, 0, "x", 0)), -EBADMSG);
	teardown();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		stops_a_sender_whose_receiver_gave_up,
		tells_a_receiver_that_its_sender_gave_up,
		repeats_a_reset_until_it_is_settled,
		tells_the_sender_that_all_arrived_after_the_receiver_closed,
		says_the_last_credit_once_when_it_closes_later,
		asks_nothing_once_all_arrived,
		answers_frames_of_unknown_channels,
		ends_the_other_end_when_one_is_closed,
		tells_a_receiver_that_comes_after_its_sender_gave_up,
		tells_a_sender_that_comes_after_its_receiver_gave_up,
		keeps_the_resets_of_so_many_receivers_that_never_came,
		tells_a_rolled_back_peer_by_the_channels_it_does_not_know,
		closes_on_frames_against_the_rules,
		closes_on_bytes_beyond_the_window,
		closes_on_credit_that_cannot_be,
		bounds_the_table_and_what_a_peer_can_put_into_it,
	};

	return unit_run("chan-peer", tests, RSB_ARRAY_SIZE(tests));
}
