/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/session.h"
#include "tests/unit/unit.h"

#define MS RSB_NSEC_PER_MSEC
#define PING_NS (1000 * MS)

/* One end, and what its application saw. */
struct end {
	struct rsb_session *session;
	uint64_t offset;
	size_t n_fin;
	size_t n_writable;
	int reset;
	bool consumes;
};

static void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct end *end = arg;

	end->offset += data.size;
	end->n_fin += fin;
	if (end->consumes)
		rsb_chan_consume(rsb_session_chans(end->session), chan, data.size);
}

static void
on_writable(void *arg, rsb_unused uint64_t chan)
{
	struct end *end = arg;

	end->n_writable++;
}

static void
on_reset(void *arg, rsb_unused uint64_t chan, int r)
{
	struct end *end = arg;

	end->reset = r;
}

static const struct rsb_chan_ops chan_ops = {
	.data = on_data,
	.writable = on_writable,
	.reset = on_reset,
};

static void
end_init(struct end *end)
{
	const struct rsb_session_config config = {
		.send_max = 1 << 20,
		.window = 1 << 20,
		.ping_ns = PING_NS,
		.silent_max = 6,
		.missed_max = 3,
		.chan_ops = &chan_ops,
		.chan_arg = end,
	};

	*end = (struct end){ .consumes = true };
	ck_assert_int_eq(rsb_session_new(&config, &end->session), 0);
}

/* Both attach with what the other says. */
static void
connect_ends(struct end *a, struct end *b, uint64_t now_ns)
{
	struct rsb_stream_state of_a, of_b;

	rsb_session_detach(a->session);
	rsb_session_detach(b->session);
	rsb_stream_state(rsb_session_stream(a->session), &of_a);
	rsb_stream_state(rsb_session_stream(b->session), &of_b);
	ck_assert_int_eq(rsb_session_attach(a->session, now_ns, &of_b, NULL), 0);
	ck_assert_int_eq(rsb_session_attach(b->session, now_ns, &of_a, NULL), 0);
}

/* Everything that from has to say now goes to to; the number of frames. types may be NULL. */
static size_t
carry(struct end *from, struct end *to, uint64_t now_ns, char *types)
{
	struct rsb_buf out = { 0 };
	size_t n = 0;

	for (;;) {
		rsb_buf_clear(&out);
		int r = rsb_session_output(from->session, now_ns, &out);

		ck_assert_int_ge(r, 0);
		if (r == 0)
			break;
		if (types)
			types[n] = (char)('A' + rsb_buf_head(&out)[0]);
		n++;
		if (to)
			ck_assert_int_eq(
				rsb_session_input(to->session, now_ns, rsb_buf_view(&out)), 0);
	}
	if (types)
		types[n] = '\0';
	rsb_buf_done(&out);
	return n;
}

static void
settle(struct end *a, struct end *b, uint64_t now_ns)
{
	while (carry(a, b, now_ns, NULL) + carry(b, a, now_ns, NULL) > 0)
		;
}

START_TEST(carries_messages_and_streams_over_a_broken_connection)
{
	static const char text[] = "hello";
	uint64_t now_ns = MS;
	struct rsb_msg *msg;
	struct end a, b;

	end_init(&a);
	end_init(&b);
	connect_ends(&a, &b, now_ns);
	settle(&a, &b, now_ns);
	ck_assert_int_eq(rsb_chan_open_receiver(rsb_session_chans(b.session), 5, 0), 0);
	ck_assert_int_eq(rsb_chan_open_sender(rsb_session_chans(a.session), 5, 1 << 20), 0);
	ck_assert_int_eq(
		rsb_stream_send(rsb_session_stream(a.session), RSB_CLASS_FIFO, rsb_bytes_str(text)),
		0);
	ck_assert_int_eq(rsb_chan_write(rsb_session_chans(a.session), 5, rsb_bytes_str(text)), 5);
	ck_assert_int_eq(rsb_chan_finish(rsb_session_chans(a.session), 5), 0);
	ck_assert_uint_gt(carry(&a, NULL, now_ns, NULL), 0);

	connect_ends(&a, &b, now_ns);
	settle(&a, &b, now_ns);
	msg = rsb_stream_take(rsb_session_stream(b.session));
	ck_assert_ptr_nonnull(msg);
	ck_assert_uint_eq(msg->size, 5);
	ck_assert_mem_eq(msg->data, text, 5);
	free(msg);
	ck_assert_ptr_null(rsb_stream_peek(rsb_session_stream(b.session)));
	ck_assert_uint_eq(b.offset, 5);
	ck_assert_uint_eq(b.n_fin, 1);
	ck_assert(rsb_chan_drained(rsb_session_chans(a.session), 5));
	rsb_session_free(a.session);
	rsb_session_free(b.session);
}
END_TEST

START_TEST(refuses_a_configuration_without_time_or_room)
{
	struct rsb_session_config config = {
		.send_max = 1,
		.window = 1,
		.ping_ns = 1,
		.silent_max = 1,
		.chan_ops = &chan_ops,
	};
	struct rsb_session *session;

	config.send_max = 0;
	ck_assert_int_eq(rsb_session_new(&config, &session), -EINVAL);
	config.send_max = 1;
	config.ping_ns = 0;
	ck_assert_int_eq(rsb_session_new(&config, &session), -EINVAL);
	config.ping_ns = 1;
	config.silent_max = 0;
	ck_assert_int_eq(rsb_session_new(&config, &session), -EINVAL);
	rsb_session_free(NULL);
}
END_TEST

START_TEST(is_silent_without_a_connection)
{
	struct rsb_buf out = { 0 };
	struct end a;

	end_init(&a);
	ck_assert(!rsb_session_attached(a.session));
	ck_assert_int_eq(rsb_session_output(a.session, MS, &out), 0);
	ck_assert_int_eq(rsb_session_tick(a.session, MS), 0);
	ck_assert_uint_eq(rsb_session_deadline(a.session), 0);
	ck_assert_int_eq(rsb_session_input(a.session, MS, rsb_bytes_str("x")), -ENOTCONN);
	rsb_session_free(a.session);
}
END_TEST

START_TEST(sends_control_before_messages_before_streams)
{
	uint64_t now_ns = MS;
	struct end a, b;
	char types[16];

	end_init(&a);
	end_init(&b);
	connect_ends(&a, &b, now_ns);
	settle(&a, &b, now_ns);
	ck_assert_int_eq(rsb_chan_open_receiver(rsb_session_chans(b.session), 5, 0), 0);
	ck_assert_int_eq(rsb_chan_open_sender(rsb_session_chans(a.session), 5, 1 << 20), 0);
	ck_assert_int_eq(rsb_chan_open_receiver(rsb_session_chans(a.session), 4, 0), 0);
	ck_assert_int_eq(rsb_chan_write(rsb_session_chans(a.session), 5, rsb_bytes_str("x")), 1);
	ck_assert_int_eq(
		rsb_stream_send(rsb_session_stream(a.session), RSB_CLASS_READ, rsb_bytes_str("x")),
		0);
	now_ns += PING_NS;
	ck_assert_uint_eq(carry(&b, &a, now_ns, types), 2);
	ck_assert_str_eq(types, "HK");
	ck_assert_uint_eq(carry(&a, &b, now_ns, types), 5);
	ck_assert_str_eq(types, "IHKFJ");
	rsb_session_free(a.session);
	rsb_session_free(b.session);
}
END_TEST

START_TEST(acknowledges_behind_other_frames_or_a_little_later)
{
	uint64_t now_ns = MS;
	struct end a, b;
	char types[16];

	end_init(&a);
	end_init(&b);
	connect_ends(&a, &b, now_ns);
	settle(&a, &b, now_ns);
	ck_assert_int_eq(
		rsb_stream_send(rsb_session_stream(a.session), RSB_CLASS_READ, rsb_bytes_str("x")),
		0);
	ck_assert_uint_eq(carry(&a, &b, now_ns, NULL), 1);
	ck_assert_uint_eq(carry(&b, &a, now_ns, NULL), 0);
	ck_assert_uint_eq(rsb_session_deadline(b.session), now_ns + RSB_SESSION_LAZY_NS);
	now_ns += RSB_SESSION_LAZY_NS - 1;
	ck_assert_uint_eq(carry(&b, &a, now_ns, NULL), 0);
	now_ns++;
	ck_assert_int_eq(rsb_session_tick(b.session, now_ns), 0);
	ck_assert_uint_gt(rsb_session_deadline(b.session), now_ns);
	ck_assert_uint_eq(carry(&b, &a, now_ns, types), 1);
	ck_assert_str_eq(types, "G");
	ck_assert(!rsb_stream_waits_for_ack(rsb_session_stream(a.session)));

	ck_assert_int_eq(
		rsb_stream_send(rsb_session_stream(a.session), RSB_CLASS_READ, rsb_bytes_str("x")),
		0);
	ck_assert_uint_eq(carry(&a, &b, now_ns, NULL), 1);
	ck_assert_int_eq(
		rsb_stream_send(rsb_session_stream(b.session), RSB_CLASS_READ, rsb_bytes_str("x")),
		0);
	ck_assert_uint_eq(carry(&b, &a, now_ns, types), 2);
	ck_assert_str_eq(types, "FG");
	rsb_session_free(a.session);
	rsb_session_free(b.session);
}
END_TEST

START_TEST(measures_the_round_trip)
{
	uint64_t now_ns = MS;
	struct end a, b;
	int i;

	end_init(&a);
	end_init(&b);
	connect_ends(&a, &b, now_ns);
	ck_assert_uint_eq(rsb_session_rtt(a.session), 0);
	(void)carry(&a, &b, now_ns, NULL);
	now_ns += 40 * MS;
	(void)carry(&b, &a, now_ns, NULL);
	ck_assert_uint_eq(rsb_session_rtt(a.session), 40 * MS);
	for (i = 0; i < 100; i++) {
		now_ns += PING_NS;
		(void)carry(&a, &b, now_ns, NULL);
		now_ns += 8 * MS;
		(void)carry(&b, &a, now_ns, NULL);
	}
	ck_assert_uint_le(rsb_session_rtt(a.session), 9 * MS);
	rsb_session_free(a.session);
	rsb_session_free(b.session);
}
END_TEST

START_TEST(gives_up_a_peer_that_is_silent)
{
	uint64_t now_ns = MS, begin_ns = now_ns;
	unsigned int n_suspect = 0;
	struct end a, b;

	end_init(&a);
	end_init(&b);
	connect_ends(&a, &b, now_ns);
	while (now_ns < begin_ns + 6 * PING_NS) {
		ck_assert_int_eq(rsb_session_tick(a.session, now_ns), 0);
		ck_assert_int_eq(
			rsb_session_suspect(a.session, now_ns), now_ns >= begin_ns + 3 * PING_NS);
		n_suspect += now_ns == begin_ns + 3 * PING_NS;
		(void)carry(&a, NULL, now_ns, NULL);
		ck_assert_uint_gt(rsb_session_deadline(a.session), now_ns);
		now_ns = rsb_session_deadline(a.session);
	}
	ck_assert_uint_eq(n_suspect, 1);
	ck_assert_uint_eq(now_ns, begin_ns + 6 * PING_NS);
	ck_assert_int_eq(rsb_session_tick(a.session, now_ns), -ETIMEDOUT);
	rsb_session_free(a.session);
	rsb_session_free(b.session);
}
END_TEST

START_TEST(does_not_hold_its_own_sleep_against_the_peer)
{
	uint64_t now_ns = MS, woke_ns = now_ns + 3600 * PING_NS;
	struct end a, b;

	end_init(&a);
	end_init(&b);
	connect_ends(&a, &b, now_ns);
	settle(&a, &b, now_ns);
	ck_assert_int_eq(
		rsb_stream_send(rsb_session_stream(a.session), RSB_CLASS_READ, rsb_bytes_str("x")),
		0);
	(void)carry(&a, NULL, now_ns, NULL);
	now_ns = woke_ns;
	ck_assert_int_eq(rsb_session_tick(a.session, now_ns), 0);
	ck_assert(!rsb_session_suspect(a.session, now_ns));
	ck_assert_uint_gt(rsb_session_deadline(a.session), now_ns);
	/* a peer that is gone is noticed as late as at any other time */
	while (rsb_session_tick(a.session, now_ns) == 0) {
		(void)carry(&a, NULL, now_ns, NULL);
		now_ns = rsb_session_deadline(a.session);
	}
	ck_assert_uint_eq(now_ns, woke_ns + 5 * PING_NS);
	rsb_session_free(a.session);
	rsb_session_free(b.session);
}
END_TEST

START_TEST(does_not_count_sleep_as_a_round_trip)
{
	uint64_t now_ns = MS;
	struct end a, b;

	end_init(&a);
	end_init(&b);
	connect_ends(&a, &b, now_ns);
	ck_assert_uint_gt(carry(&a, &b, now_ns, NULL), 0);
	now_ns += 1000 * PING_NS;
	ck_assert_uint_gt(carry(&b, &a, now_ns, NULL), 0);
	ck_assert_uint_gt(rsb_session_rtt(a.session), 0);
	ck_assert_uint_le(rsb_session_rtt(a.session), PING_NS);
	rsb_session_free(a.session);
	rsb_session_free(b.session);
}
END_TEST

START_TEST(gives_up_a_peer_that_answers_but_acknowledges_nothing)
{
	static const uint8_t token_at = 9;
	uint64_t now_ns = MS, begin_ns = now_ns;
	struct rsb_buf out = { 0 };
	struct end a, b;
	int r = 0;

	end_init(&a);
	end_init(&b);
	connect_ends(&a, &b, now_ns);
	ck_assert_int_eq(
		rsb_stream_send(rsb_session_stream(a.session), RSB_CLASS_READ, rsb_bytes_str("x")),
		0);
	while (r == 0) {
		uint8_t pong[RSB_FRAME_HEAD] = { RSB_FRAME_PONG };

		rsb_buf_clear(&out);
		while (rsb_session_output(a.session, now_ns, &out) > 0) {
			if (rsb_buf_head(&out)[0] == RSB_FRAME_PING) {
				pong[token_at] = rsb_buf_head(&out)[token_at];
				ck_assert_int_eq(rsb_session_input(a.session, now_ns,
							 (struct rsb_bytes){ pong, sizeof(pong) }),
					0);
			}
			rsb_buf_clear(&out);
		}
		now_ns = rsb_session_deadline(a.session);
		r = rsb_session_tick(a.session, now_ns);
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_uint_eq(now_ns - begin_ns, RSB_STUCK_MS * MS);
	rsb_buf_done(&out);
	rsb_session_free(a.session);
	rsb_session_free(b.session);
}
END_TEST

static int
input_frame(struct end *end, struct rsb_frame frame)
{
	struct rsb_buf out = { 0 };
	int r;

	ck_assert_int_eq(rsb_frame_encode(&frame, NULL, &out), 0);
	r = rsb_session_input(end->session, MS, rsb_buf_view(&out));
	rsb_buf_done(&out);
	return r;
}

START_TEST(closes_on_frames_that_do_not_belong)
{
	const struct rsb_bytes byte = rsb_bytes_str("x");
	const struct {
		struct rsb_frame frame;
		int r;
	} cases[] = {
		{ { .type = RSB_FRAME_HELLO }, -EBADMSG },
		{ { .type = RSB_FRAME_PING, .b = 1 }, -EBADMSG },
		{ { .type = RSB_FRAME_PING, .flags = RSB_FRAME_FIN }, -EBADMSG },
		{ { .type = RSB_FRAME_PING, .payload = byte }, -EBADMSG },
		{ { .type = RSB_FRAME_PONG, .a = 1 }, -EBADMSG },
		{ { .type = RSB_FRAME_BYE }, -ECONNRESET },
		{ { .type = RSB_FRAME_ACK, .a = 1 }, -EBADMSG },
		{ { .type = RSB_FRAME_CREDIT, .a = 1 }, -EBADMSG },
		{ { .type = 200 }, 0 },
	};
	struct end a, b;
	size_t i;

	end_init(&a);
	end_init(&b);
	connect_ends(&a, &b, MS);
	for (i = 0; i < RSB_ARRAY_SIZE(cases); i++)
		ck_assert_int_eq(input_frame(&a, cases[i].frame), cases[i].r);
	ck_assert_int_eq(rsb_session_input(a.session, MS, rsb_bytes_str("short")), -EBADMSG);
	(void)carry(&a, NULL, MS, NULL);
	ck_assert_int_eq(
		input_frame(&a, (struct rsb_frame){ .type = RSB_FRAME_PONG, .a = 7 }), -EBADMSG);
	rsb_session_free(a.session);
	rsb_session_free(b.session);
}
END_TEST

START_TEST(does_not_resume_with_a_peer_that_was_rolled_back)
{
	const struct rsb_stream_state peer = { .limit = 1 << 20, .acked = 1 };
	struct end a;

	end_init(&a);
	ck_assert_int_eq(rsb_session_attach(a.session, MS, &peer, NULL), -ESTALE);
	ck_assert(!rsb_session_attached(a.session));
	rsb_session_free(a.session);
}
END_TEST

START_TEST(asks_early_whether_many_last_frames_arrived)
{
	uint64_t now_ns = MS, chan;
	struct end a, b;
	char types[128];

	end_init(&a);
	end_init(&b);
	connect_ends(&a, &b, now_ns);
	settle(&a, &b, now_ns);
	for (chan = 4; chan <= 4 * 64; chan += 4) {
		ck_assert_int_eq(rsb_chan_open_receiver(rsb_session_chans(a.session), chan, 0), 0);
		rsb_chan_reset(rsb_session_chans(a.session), chan, -EIO);
	}
	(void)carry(&a, &b, now_ns, types);
	ck_assert_int_eq(types[0], 'H');
	(void)carry(&b, &a, now_ns, types);
	ck_assert_str_eq(types, "I");
	/* That PING left before the frames did; the next one settles them. */
	settle(&a, &b, now_ns);
	ck_assert_uint_eq(rsb_chans_unsettled(rsb_session_chans(a.session)), 0);
	rsb_session_free(a.session);
	rsb_session_free(b.session);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		carries_messages_and_streams_over_a_broken_connection,
		refuses_a_configuration_without_time_or_room,
		is_silent_without_a_connection,
		sends_control_before_messages_before_streams,
		acknowledges_behind_other_frames_or_a_little_later,
		measures_the_round_trip,
		gives_up_a_peer_that_is_silent,
		does_not_hold_its_own_sleep_against_the_peer,
		does_not_count_sleep_as_a_round_trip,
		gives_up_a_peer_that_answers_but_acknowledges_nothing,
		closes_on_frames_that_do_not_belong,
		does_not_resume_with_a_peer_that_was_rolled_back,
		asks_early_whether_many_last_frames_arrived,
	};

	return unit_run("session", tests, RSB_ARRAY_SIZE(tests));
}
