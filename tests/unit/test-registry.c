/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "proto/session.h"
#include "proto/version.h"
#include "tests/unit/house.h"

START_TEST(goes_on_with_the_session_of_before)
{
	struct guest guest = { .n_lost = 0 }, other = { .n_lost = 0 };
	struct rsb_sess *sess;
	struct house house;

	house_init(&house, NULL);
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	ck_assert(!guest.resumed);
	sess = guest.sess;
	ck_assert_int_eq(house_come(&house, &other, "box", "2"), 0);
	ck_assert_ptr_ne(other.sess, sess);
	house_leave(&guest);
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	ck_assert(guest.resumed);
	ck_assert_ptr_eq(guest.sess, sess);
	house_done(&house);
}
END_TEST

START_TEST(gives_the_session_to_the_newer_connection)
{
	struct guest old = { .n_lost = 0 }, new = { .n_lost = 0 };
	struct house house;

	house_init(&house, NULL);
	ck_assert_int_eq(house_come(&house, &old, "box", "1"), 0);
	(void)strcpy(new.epoch, old.epoch);
	ck_assert_int_eq(house_come(&house, &new, "box", "1"), 0);
	ck_assert(new.resumed);
	ck_assert_uint_eq(old.n_lost, 1);
	/* The old connection notices late, and takes nothing away. */
	rsb_sess_detach(new.sess, &old.carrier);
	ck_assert_ptr_eq(new.sess->carrier, &new.carrier);
	house_done(&house);
}
END_TEST

START_TEST(refuses_a_hello_that_was_held_up)
{
	struct guest guest = { .n_lost = 0 }, late = { .n_lost = 0 };
	const struct rsb_frame ack = { .type = RSB_FRAME_ACK, .a = 1, .b = RSB_HOST_WINDOW };
	struct rsb_stream *stream;
	struct rsb_frame frame;
	struct house house;

	house_init(&house, NULL);
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	stream = rsb_session_stream(guest.sess->proto);
	ck_assert_int_eq(rsb_stream_send(stream, RSB_CLASS_READ, rsb_bytes_str("reply")), 0);
	ck_assert_int_eq(rsb_stream_output(stream, &frame), 1);
	ck_assert_int_eq(rsb_stream_input(stream, &ack), 0);
	/* It says that it has nothing, but on the connection that lives it said more. */
	(void)strcpy(late.epoch, guest.epoch);
	ck_assert_int_eq(house_come(&house, &late, "box", "1"), -EBUSY);
	ck_assert_uint_eq(guest.n_lost, 0);
	ck_assert_ptr_eq(guest.sess->carrier, &guest.carrier);
	house_done(&house);
}
END_TEST

START_TEST(begins_anew_for_a_host_that_knows_nothing)
{
	struct guest guest = { .n_lost = 0 };
	struct house house;

	house_init(&house, NULL);
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	house_leave(&guest);
	guest.epoch[0] = 0;
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	ck_assert(!guest.resumed);
	house_leave(&guest);
	guest.sess->broken = true;
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	ck_assert(!guest.resumed);
	house_done(&house);
}
END_TEST

START_TEST(forgets_all_when_it_was_forked)
{
	struct guest guest = { .n_lost = 0 }, other = { .n_lost = 0 };
	struct house house;
	char before[65];

	house_init(&house, NULL);
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	ck_assert_int_eq(house_come(&house, &other, "box", "2"), 0);
	(void)strcpy(before, guest.epoch);
	ck_assert_int_eq(house_come(&house, &guest, "copy of box", "1"), 0);
	ck_assert(!guest.resumed);
	ck_assert_str_ne(guest.epoch, before);
	ck_assert_uint_eq(other.n_lost, 1);
	ck_assert_int_eq(house_come(&house, &other, "copy of box", "2"), 0);
	ck_assert(!other.resumed);
	/* And from now on this is the copy's. */
	house_leave(&guest);
	ck_assert_int_eq(house_come(&house, &guest, "copy of box", "1"), 0);
	ck_assert(guest.resumed);
	house_done(&house);
}
END_TEST

START_TEST(forgets_all_when_it_was_rolled_back)
{
	struct guest guest = { .n_lost = 0 };
	struct rsb_hello hello = {
		.sandbox_id = rsb_bytes_str("box"),
		.client_id = rsb_bytes_str("client"),
		.session_id = rsb_bytes_str("1"),
		.window = RSB_HOST_WINDOW,
		.received = 1000,
		.acked = 1000,
	};
	const struct rsb_join join = {
		.hello = &hello, .version = RSB_PROTO_VERSION, .carrier = &guest.carrier
	};
	struct house house;
	char before[65];

	house_init(&house, NULL);
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	(void)strcpy(before, guest.epoch);
	hello.epoch = rsb_bytes_str(before);
	house_leave(&guest);
	/* It acknowledged a thousand messages that this memory has never sent. */
	ck_assert_int_eq(house_join(&house, &join, &guest), 0);
	ck_assert(!guest.resumed);
	ck_assert_str_ne(rsb_registry_epoch(house.registry), before);
	house_done(&house);
}
END_TEST

START_TEST(makes_room_by_the_session_that_was_left_first)
{
	struct guest guests[RSB_SESSIONS_MAX] = { 0 }, late = { .n_lost = 0 };
	struct house house;
	char id[2] = "a";

	house_init(&house, NULL);
	for (size_t i = 0; i < RSB_SESSIONS_MAX; i++, id[0]++)
		ck_assert_int_eq(house_come(&house, &guests[i], "box", id), 0);
	ck_assert_int_eq(house_come(&house, &late, "box", "z"), -EMFILE);
	house_leave(&guests[5]);
	house.now_ns += RSB_NSEC_PER_SEC;
	house_leave(&guests[3]);
	ck_assert_int_eq(house_come(&house, &late, "box", "z"), 0);
	ck_assert_int_eq(house_come(&house, &guests[3], "box", "d"), 0);
	ck_assert(guests[3].resumed);
	house_leave(&guests[3]);
	ck_assert_int_eq(house_come(&house, &guests[5], "box", "f"), 0);
	ck_assert(!guests[5].resumed);
	house_done(&house);
}
END_TEST

START_TEST(forgets_a_session_that_nobody_comes_back_to)
{
	static const uint64_t minute_ns = 60 * RSB_NSEC_PER_SEC;
	struct guest guest = { .n_lost = 0 };
	struct house house;

	house_init(&house, NULL);
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	house.now_ns += 48 * 3600 * RSB_NSEC_PER_SEC;
	ck_assert_int_eq(rsb_loop_step(house.loop, 0), 0);
	ck_assert_uint_eq(guest.n_lost, 0);
	house_leave(&guest);
	/* All at once: the sandbox was paused. */
	house.now_ns += 25 * 60 * minute_ns;
	ck_assert_int_eq(rsb_loop_step(house.loop, 0), 0);
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	ck_assert(guest.resumed);
	house_leave(&guest);
	for (unsigned int i = 0; i < 24 * 60 + 1; i++) {
		house.now_ns += minute_ns;
		ck_assert_int_eq(rsb_loop_step(house.loop, 0), 0);
	}
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	ck_assert(!guest.resumed);
	house_done(&house);
}
END_TEST

START_TEST(hands_a_session_on_to_the_next_process)
{
	struct guest guest = { .n_lost = 0 }, next, old;
	struct rsb_sess *sess;
	struct house house;

	house_init(&house, NULL);
	ck_assert_int_eq(house_come(&house, &guest, "box", "1"), 0);
	sess = guest.sess;
	sess->fifo_seen = 5;
	next = guest;
	ck_assert_int_eq(house_come_again(&house, &next, 1, 3), 0);
	ck_assert_uint_eq(guest.n_lost, 1);
	ck_assert(next.resumed);
	ck_assert_ptr_eq(next.sess, sess);
	/* A hello of the dead one that was held up. */
	old = next;
	ck_assert_int_eq(house_come(&house, &old, "box", "1"), -EBUSY);
	/* The process after that knows a reply that this memory never gave. */
	ck_assert_int_eq(house_come_again(&house, &old, 2, 6), 0);
	ck_assert(!old.resumed);
	ck_assert_uint_eq(next.n_lost, 1);
	house_done(&house);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		goes_on_with_the_session_of_before,
		gives_the_session_to_the_newer_connection,
		refuses_a_hello_that_was_held_up,
		hands_a_session_on_to_the_next_process,
		begins_anew_for_a_host_that_knows_nothing,
		forgets_all_when_it_was_forked,
		forgets_all_when_it_was_rolled_back,
		makes_room_by_the_session_that_was_left_first,
		forgets_a_session_that_nobody_comes_back_to,
	};

	return unit_run("registry", tests, RSB_ARRAY_SIZE(tests));
}
