/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "proto/limits.h"
#include "proto/session.h"
#include "tests/fuzz/fuzz.h"

/*
 * A hostile peer, and an application that does everything it may: each step is a byte that says
 * what, and its arguments. The peer's frames are made of fields, so that they pass the frame
 * decoder; numbers are near those that would be right.
 */

#define SEND_MAX 20000
#define WINDOW 5000
#define STEPS_MAX 5000

struct app {
	struct rsb_session *session;
	const uint8_t *data;
	size_t size;
	uint64_t now_ns;
	size_t reserved; /* by one reservation at a time; 0: none */
	size_t unconsumed[16];
	struct rsb_buf out;
};

static uint8_t
next(struct app *app)
{
	if (app->size == 0)
		return 0;
	app->size--;
	return *app->data++;
}

/* Small, or around the window of a stream, or anything. */
static uint64_t
number(struct app *app)
{
	uint8_t v = next(app);

	if (v < 128)
		return v;
	if (v < 160)
		return RSB_CHAN_WINDOW + (uint64_t)v - 144;
	if (v < 250)
		return (uint64_t)(v - 160) << 8 | next(app);
	return UINT64_MAX - (255 - v);
}

static void
on_data(void *arg, uint64_t chan, struct rsb_bytes data, bool fin)
{
	struct app *app = arg;

	FUZZ_CHECK(chan < 16);
	app->unconsumed[chan] += data.size;
	FUZZ_CHECK(app->unconsumed[chan] <= RSB_CHAN_WINDOW);
	if (fin && chan % 2)
		rsb_chan_close(rsb_session_chans(app->session), chan);
}

static void
on_writable(void *arg, uint64_t chan)
{
	struct app *app = arg;
	struct rsb_chans *chans = rsb_session_chans(app->session);

	FUZZ_CHECK(rsb_chan_drained(chans, chan) || rsb_chan_room(chans, chan) > 0);
}

static void
on_reset(void *arg, uint64_t chan, int r)
{
	struct app *app = arg;

	FUZZ_CHECK(r < 0 && r != -ESTALE);
	FUZZ_CHECK(rsb_chan_offset(rsb_session_chans(app->session), chan) == 0);
}

static const struct rsb_chan_ops ops = {
	.data = on_data,
	.writable = on_writable,
	.reset = on_reset,
};

/* The state that an honest peer could have, or one that the input makes up. */
static void
attach(struct app *app)
{
	struct rsb_stream_state ours, peer = { 0 };
	int r;

	rsb_stream_state(rsb_session_stream(app->session), &ours);
	peer.received = ours.acked + next(app) % 4;
	peer.acked = ours.received - rsb_min(ours.received, (uint64_t)(next(app) % 4));
	peer.limit = number(app) << 4;
	r = rsb_session_attach(app->session, app->now_ns, &peer, NULL);
	FUZZ_CHECK(r == 0 || r == -ESTALE);
}

static void
check(const struct app *app)
{
	const struct rsb_stream *stream = rsb_session_stream(app->session);
	size_t waits = 0, last = 0;
	const struct rsb_msg *msg;

	for (msg = rsb_stream_peek(stream); msg; msg = msg->next) {
		last = msg->size + RSB_STREAM_COST;
		waits += last;
	}
	FUZZ_CHECK(waits == 0 || waits - last < WINDOW);
	FUZZ_CHECK(rsb_stream_space(stream) < SEND_MAX);
	FUZZ_CHECK(rsb_chans_unsettled(rsb_session_chans(app->session)) <= RSB_CHANS_MAX);
}

static void
peer_frame(struct app *app)
{
	static const uint8_t zeros[RSB_FRAME_PAYLOAD_MAX];
	struct rsb_buf in = { 0 };
	struct rsb_frame frame = { .type = next(app) % 14, .flags = next(app) & 5 };
	int r;

	frame.a = number(app);
	frame.b = number(app);
	if (frame.type == RSB_FRAME_CREDIT) {
		uint8_t received[8] = { 0 };

		received[7] = next(app);
		received[6] = next(app) & 7;
		frame.payload = (struct rsb_bytes){ received, next(app) % 16 ? 8 : 7 };
		r = rsb_frame_encode(&frame, NULL, &in);
	} else {
		frame.payload =
			(struct rsb_bytes){ zeros, rsb_min((size_t)number(app), sizeof(zeros)) };
		r = rsb_frame_encode(&frame, NULL, &in);
	}
	FUZZ_CHECK(r == 0);
	r = rsb_session_input(app->session, app->now_ns, rsb_buf_view(&in));
	rsb_buf_done(&in);
	FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -ECONNRESET || r == -ESTALE || r == -ENOTCONN);
	if (r < 0)
		rsb_session_detach(app->session);
}

static void
output(struct app *app)
{
	struct rsb_frame frame;
	unsigned int n = next(app);
	int r = 1;

	while (n-- > 0 && r > 0) {
		rsb_buf_clear(&app->out);
		r = rsb_session_output(app->session, app->now_ns, &app->out);
		FUZZ_CHECK(r >= 0);
		if (r > 0)
			FUZZ_CHECK(rsb_frame_decode(rsb_buf_view(&app->out), NULL, &frame) == 0);
	}
}

static void
use_messages(struct app *app)
{
	static const uint8_t data[RSB_FRAME_PAYLOAD_MAX];
	struct rsb_stream *stream = rsb_session_stream(app->session);
	enum rsb_class class = next(app) % RSB_CLASS_N;
	size_t size = rsb_min((size_t)number(app), sizeof(data));

	switch (next(app) % 4) {
	case 0:
		(void)rsb_stream_send(stream, class, (struct rsb_bytes){ data, size });
		break;
	case 1:
		if (app->reserved == 0 && size > 0 && rsb_stream_reserve(stream, size) == 0)
			app->reserved = size;
		break;
	case 2:
		if (app->reserved > 0)
			FUZZ_CHECK(rsb_stream_send_reserved(stream, class,
					   (struct rsb_bytes){ data, app->reserved / 2 },
					   app->reserved, 0) == 0);
		app->reserved = 0;
		break;
	default:
		free(rsb_stream_take(stream));
		break;
	}
}

static void
use_chans(struct app *app)
{
	static const uint8_t data[RSB_FRAME_PAYLOAD_MAX];
	struct rsb_chans *chans = rsb_session_chans(app->session);
	uint64_t chan = next(app) % 16;
	size_t size = rsb_min((size_t)number(app), sizeof(data));

	switch (next(app) % 7) {
	case 0:
		(void)rsb_chan_open_sender(chans, chan, 1 + size);
		break;
	case 1:
		if (rsb_chan_open_receiver(chans, chan, 0) == 0)
			app->unconsumed[chan] = 0;
		break;
	case 2:
		(void)rsb_chan_write(chans, chan, (struct rsb_bytes){ data, size });
		break;
	case 3:
		(void)rsb_chan_finish(chans, chan);
		break;
	case 4:
		size = rsb_min(size, app->unconsumed[chan]);
		rsb_chan_consume(chans, chan, size);
		app->unconsumed[chan] -= size;
		break;
	case 5:
		rsb_chan_close(chans, chan);
		break;
	default:
		rsb_chan_reset(chans, chan, -EIO);
		break;
	}
}

static void
step(struct app *app)
{
	switch (next(app) % 8) {
	case 0:
		attach(app);
		break;
	case 1:
		use_messages(app);
		break;
	case 2:
		use_chans(app);
		break;
	case 3:
		output(app);
		break;
	case 4:
		app->now_ns += (uint64_t)next(app) * 50 * RSB_NSEC_PER_MSEC;
		if (rsb_session_tick(app->session, app->now_ns) < 0)
			rsb_session_detach(app->session);
		break;
	default:
		peer_frame(app);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct app app = { .data = data, .size = size, .now_ns = 1 };
	const struct rsb_session_config config = {
		.send_max = SEND_MAX,
		.window = WINDOW,
		.ping_ns = RSB_NSEC_PER_SEC,
		.silent_max = 3,
		.chan_ops = &ops,
		.chan_arg = &app,
	};
	unsigned int n;

	FUZZ_CHECK(rsb_session_new(&config, &app.session) == 0);
	for (n = 0; app.size > 0 && n < STEPS_MAX; n++) {
		step(&app);
		check(&app);
	}
	rsb_session_free(app.session);
	rsb_buf_done(&app.out);
	return 0;
}
