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
		.silent_max = 3,
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

int
main(void)
{
	const TTest *const tests[] = {
		carries_messages_and_streams_over_a_broken_connection,
	};

	return unit_run("session", tests, RSB_ARRAY_SIZE(tests));
}
