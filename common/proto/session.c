/* SPDX-License-Identifier: MIT */
#include "proto/session.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/limits.h"
#include "proto/pace.h"

/* So many last frames of channels are not worth a wait for the next regular PING. */
#define UNSETTLED_MAX 64u

#define STUCK_NS (RSB_STUCK_MS * RSB_NSEC_PER_MSEC)

struct rsb_session {
	struct rsb_session_config config;
	struct rsb_stream *stream;
	struct rsb_chans *chans;
	struct rsb_pace pace; /* of the streams that we send */
	uint64_t rtt_ns;

	/* The rest is of the connection of the moment. */
	bool attached;
	struct rsb_zip *zip;
	uint64_t seen_ns;  /* the last call of ours */
	uint64_t heard_ns; /* the last frame of the peer */
	uint64_t acked_ns; /* the last acknowledgement, or when one began to be due */
	uint64_t acked;
	bool pong_due;
	uint64_t pong_token;
	bool ping_due;
	uint64_t ping_next_ns;
	uint64_t ping_token; /* of the PING that is not answered; 0: none */
	uint64_t ping_sent_ns;
	uint64_t ping_mark; /* see rsb_chans_mark() */
	bool ping_calm;     /* see rsb_pace_round_trip() */
	uint64_t n_ping;
	uint64_t lazy_ns; /* since when something waits for company; 0: nothing does */
	bool lazy_due;    /* ... and it waited long enough */
	bool company;     /* something went out that lazy ones can follow */
};

int
rsb_session_new(const struct rsb_session_config *config, struct rsb_session **ret_session)
{
	RSB_CLEANUP(rsb_session_freep) struct rsb_session *session = NULL;
	int r;

	if (config->ping_ns == 0 || config->silent_max == 0)
		return -EINVAL;
	session = rsb_new(struct rsb_session);
	if (!session)
		return -ENOMEM;
	session->config = *config;
	rsb_pace_init(&session->pace);
	r = rsb_stream_new(config->send_max, config->window, &session->stream);
	if (r < 0)
		return r;
	r = rsb_chans_new(config->chan_ops, config->chan_arg, &session->chans);
	if (r < 0)
		return r;
	*ret_session = rsb_steal(&session);
	return 0;
}

void
rsb_session_free(struct rsb_session *session)
{
	if (!session)
		return;
	rsb_stream_free(session->stream);
	rsb_chans_free(session->chans);
	free(session);
}

struct rsb_stream *
rsb_session_stream(struct rsb_session *session)
{
	return session->stream;
}

struct rsb_chans *
rsb_session_chans(struct rsb_session *session)
{
	return session->chans;
}

int
rsb_session_attach(struct rsb_session *session, uint64_t now_ns,
	const struct rsb_stream_state *peer, struct rsb_zip *zip)
{
	int r;

	r = rsb_stream_attach(session->stream, peer);
	if (r < 0)
		return r;
	rsb_chans_attach(session->chans);
	session->attached = true;
	session->zip = zip;
	session->seen_ns = now_ns;
	session->heard_ns = now_ns;
	session->acked_ns = now_ns;
	session->acked = rsb_stream_acked(session->stream);
	session->pong_due = false;
	session->ping_due = true;
	session->ping_next_ns = now_ns + session->config.ping_ns;
	session->ping_token = 0;
	session->lazy_ns = 0;
	session->lazy_due = false;
	session->company = false;
	rsb_pace_pause(&session->pace);
	return 0;
}

void
rsb_session_detach(struct rsb_session *session)
{
	session->attached = false;
	session->zip = NULL;
	rsb_stream_detach(session->stream);
	rsb_chans_detach(session->chans);
}

int
rsb_session_restart(
	struct rsb_session *session, void (*seen)(void *arg, struct rsb_bytes msg), void *arg)
{
	struct rsb_chans *chans;
	int r;

	r = rsb_chans_new(session->config.chan_ops, session->config.chan_arg, &chans);
	if (r < 0)
		return r;
	rsb_session_detach(session);
	rsb_chans_free(session->chans);
	session->chans = chans;
	rsb_pace_init(&session->pace);
	rsb_stream_restart(session->stream, seen, arg);
	return 0;
}

bool
rsb_session_attached(const struct rsb_session *session)
{
	return session->attached;
}

uint64_t
rsb_session_rtt(const struct rsb_session *session)
{
	return session->rtt_ns;
}

/* Awake, we are called once in an interval at least: ping_next_ns is among the deadlines. */
static void
note_sleep(struct rsb_session *session, uint64_t now_ns)
{
	uint64_t step_ns, slept_ns;

	if (now_ns <= session->seen_ns)
		return;
	step_ns = now_ns - session->seen_ns;
	session->seen_ns = now_ns;
	if (step_ns <= 2 * session->config.ping_ns)
		return;
	slept_ns = step_ns - session->config.ping_ns;
	session->heard_ns += slept_ns;
	session->acked_ns += slept_ns;
	session->ping_sent_ns += slept_ns;
}

/* ---- input ---- */

static int
input_stream(struct rsb_session *session, uint64_t now_ns, const struct rsb_frame *frame)
{
	uint64_t acked;
	int r;

	r = rsb_stream_input(session->stream, frame);
	if (r < 0)
		return r;
	acked = rsb_stream_acked(session->stream);
	if (acked != session->acked)
		session->acked_ns = now_ns;
	session->acked = acked;
	return 0;
}

static int
input_chans(struct rsb_session *session, uint64_t now_ns, const struct rsb_frame *frame)
{
	uint64_t before = rsb_chans_delivered(session->chans), delivered;
	int r;

	r = rsb_chans_input(session->chans, frame);
	if (r < 0)
		return r;
	delivered = rsb_chans_delivered(session->chans);
	if (delivered != before)
		rsb_pace_progress(&session->pace, now_ns, delivered,
			rsb_chans_in_flight(session->chans) == 0);
	return 0;
}

static int
input_pong(struct rsb_session *session, uint64_t now_ns, const struct rsb_frame *frame)
{
	uint64_t rtt_ns;

	if (session->ping_token == 0 || frame->a != session->ping_token)
		return -EBADMSG;
	session->ping_token = 0;
	rtt_ns = rsb_max(now_ns - session->ping_sent_ns, UINT64_C(1));
	session->rtt_ns = session->rtt_ns ? (session->rtt_ns * 7 + rtt_ns) / 8 : rtt_ns;
	rsb_pace_round_trip(&session->pace, now_ns, rtt_ns, session->ping_calm);
	rsb_chans_settle(session->chans, session->ping_mark);
	return 0;
}

static int
input_control(struct rsb_session *session, uint64_t now_ns, const struct rsb_frame *frame)
{
	if (frame->flags != 0 || frame->b != 0 || frame->payload.size != 0)
		return -EBADMSG;
	switch (frame->type) {
	case RSB_FRAME_PING:
		/*
		 * Only the last of several is answered, so a peer that does not read costs nothing.
		 */
		session->pong_due = true;
		session->pong_token = frame->a;
		return 0;
	case RSB_FRAME_PONG:
		return input_pong(session, now_ns, frame);
	case RSB_FRAME_BYE:
		return -ECONNRESET;
	default:
		return -EBADMSG;
	}
}

int
rsb_session_input(struct rsb_session *session, uint64_t now_ns, struct rsb_bytes frame)
{
	struct rsb_frame f;
	int r;

	if (!session->attached)
		return -ENOTCONN;
	note_sleep(session, now_ns);
	r = rsb_frame_decode(frame, session->zip, &f);
	if (r < 0 && r != -EOPNOTSUPP)
		return r;
	session->heard_ns = now_ns;
	if (r < 0)
		return 0;
	switch (f.type) {
	case RSB_FRAME_MESSAGE:
	case RSB_FRAME_ACK:
		return input_stream(session, now_ns, &f);
	case RSB_FRAME_STREAM:
	case RSB_FRAME_CREDIT:
	case RSB_FRAME_RESET:
		return input_chans(session, now_ns, &f);
	default:
		return input_control(session, now_ns, &f);
	}
}

/* ---- time ---- */

/* Turns what is due by now into flags, so that no deadline stays in the past. */
static void
note_time(struct rsb_session *session, uint64_t now_ns)
{
	if (now_ns >= session->ping_next_ns) {
		session->ping_due = true;
		session->ping_next_ns = now_ns + session->config.ping_ns;
	}
	if (session->lazy_ns != 0 && now_ns >= session->lazy_ns + RSB_SESSION_LAZY_NS)
		session->lazy_due = true;
}

static uint64_t
silent_ns(const struct rsb_session *session, unsigned int n_interval)
{
	return session->heard_ns + session->config.ping_ns * n_interval;
}

int
rsb_session_tick(struct rsb_session *session, uint64_t now_ns)
{
	if (!session->attached)
		return 0;
	note_sleep(session, now_ns);
	note_time(session, now_ns);
	if (now_ns >= silent_ns(session, session->config.silent_max))
		return -ETIMEDOUT;
	if (rsb_stream_waits_for_ack(session->stream) && now_ns >= session->acked_ns + STUCK_NS)
		return -ETIMEDOUT;
	return 0;
}

bool
rsb_session_suspect(const struct rsb_session *session, uint64_t now_ns)
{
	return session->attached && session->config.missed_max > 0 &&
	       now_ns >= silent_ns(session, session->config.missed_max);
}

uint64_t
rsb_session_deadline(const struct rsb_session *session)
{
	uint64_t deadline_ns, suspect_ns;

	if (!session->attached)
		return 0;
	deadline_ns =
		rsb_min(session->ping_next_ns, silent_ns(session, session->config.silent_max));
	suspect_ns = silent_ns(session, session->config.missed_max);
	if (session->config.missed_max > 0 && suspect_ns > session->seen_ns)
		deadline_ns = rsb_min(deadline_ns, suspect_ns);
	if (rsb_stream_waits_for_ack(session->stream))
		deadline_ns = rsb_min(deadline_ns, session->acked_ns + STUCK_NS);
	if (session->lazy_ns != 0 && !session->lazy_due)
		deadline_ns = rsb_min(deadline_ns, session->lazy_ns + RSB_SESSION_LAZY_NS);
	return deadline_ns;
}

/* ---- output ---- */

static bool
wants_ping(const struct rsb_session *session, uint64_t now_ns)
{
	uint64_t in_flight = rsb_chans_in_flight(session->chans);

	return session->ping_due || rsb_chans_unsettled(session->chans) >= UNSETTLED_MAX ||
	       (in_flight > 0 && in_flight <= RSB_PACE_MIN &&
		       rsb_pace_is_stale(&session->pace, now_ns));
}

static int
output_ping(struct rsb_session *session, uint64_t now_ns, struct rsb_frame *ret_frame)
{
	if (session->pong_due) {
		session->pong_due = false;
		*ret_frame = (struct rsb_frame){
			.type = RSB_FRAME_PONG,
			.a = session->pong_token,
		};
		return 1;
	}
	if (session->ping_token != 0 || !wants_ping(session, now_ns))
		return 0;
	session->ping_due = false;
	session->ping_token = ++session->n_ping;
	session->ping_sent_ns = now_ns;
	session->ping_mark = rsb_chans_mark(session->chans);
	session->ping_calm = rsb_chans_in_flight(session->chans) <= RSB_PACE_MIN;
	*ret_frame = (struct rsb_frame){ .type = RSB_FRAME_PING, .a = session->ping_token };
	return 1;
}

/* Acknowledgements and credits; lazy: also those that can wait. */
static int
output_news(struct rsb_session *session, bool lazy, struct rsb_frame *ret_frame)
{
	enum rsb_stream_ack ack = rsb_stream_ack_due(session->stream);

	if (ack == RSB_STREAM_ACK_URGENT || (lazy && ack == RSB_STREAM_ACK_LAZY)) {
		rsb_stream_output_ack(session->stream, ret_frame);
		return 1;
	}
	return rsb_chans_output(
		session->chans, lazy ? RSB_CHANS_CREDIT : RSB_CHANS_URGENT, 0, ret_frame);
}

static int
output_message(struct rsb_session *session, uint64_t now_ns, struct rsb_frame *ret_frame)
{
	bool waited = rsb_stream_waits_for_ack(session->stream);
	int r;

	r = rsb_stream_output(session->stream, ret_frame);
	if (r > 0 && !waited)
		session->acked_ns = now_ns;
	return r;
}

static int
output_chans(struct rsb_session *session, uint64_t now_ns, struct rsb_frame *ret_frame)
{
	size_t in_flight_max = rsb_pace_in_flight_max(&session->pace, now_ns);
	int r;

	r = rsb_chans_output(session->chans, RSB_CHANS_STREAM, in_flight_max, ret_frame);
	if (rsb_chans_in_flight(session->chans) >= in_flight_max)
		rsb_pace_limited(&session->pace);
	return r;
}

/* The lazy ones wait for company or for their time; when all is said, both are over. */
static void
note_lazy(struct rsb_session *session, uint64_t now_ns)
{
	if (rsb_stream_ack_due(session->stream) == RSB_STREAM_ACK_NONE &&
		!rsb_chans_credit_due(session->chans)) {
		session->lazy_ns = 0;
		session->lazy_due = false;
	} else if (session->lazy_ns == 0) {
		session->lazy_ns = now_ns;
	}
}

static int
next_frame(struct rsb_session *session, uint64_t now_ns, struct rsb_frame *ret_frame)
{
	int r;

	r = output_ping(session, now_ns, ret_frame);
	if (r == 0)
		r = output_news(session, session->lazy_due, ret_frame);
	if (r != 0)
		return r;
	r = output_message(session, now_ns, ret_frame);
	if (r == 0)
		r = output_chans(session, now_ns, ret_frame);
	if (r != 0) {
		session->company = true;
		return r;
	}
	if (!session->company)
		return 0;
	r = output_news(session, true, ret_frame);
	session->company = r > 0;
	return r;
}

int
rsb_session_output(struct rsb_session *session, uint64_t now_ns, struct rsb_buf *out)
{
	struct rsb_frame frame;
	int r;

	if (!session->attached)
		return 0;
	note_sleep(session, now_ns);
	note_time(session, now_ns);
	note_lazy(session, now_ns);
	r = next_frame(session, now_ns, &frame);
	if (r <= 0)
		return r;
	r = rsb_frame_encode(&frame, session->zip, out);
	return r < 0 ? r : 1;
}
