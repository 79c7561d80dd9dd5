/* SPDX-License-Identifier: MIT */
#ifndef RSB_SESSION_H
#define RSB_SESSION_H

/*
 * The state that one host and one sidecar share across connections: the numbered stream, the byte
 * streams, and the liveness of the connection of the moment. Both ends run this same code. Pure:
 * frames and now_ns in, frames out. For one thread, as are its stream and its channels.
 *
 * Liveness: a PING at the beginning and every ping interval, one at a time; silent_max intervals
 * without any frame from the peer, or acknowledging nothing for RSB_STUCK_MS, pongs or not, is
 * -ETIMEDOUT. The host's pings decide; the sidecar closes a connection that was silent for ten of
 * the host's intervals. Time in which nobody called here although output or tick was due (the
 * machine slept, the process was stopped) says nothing about the peer and is not counted.
 *
 * Acknowledgements and credits that the peer may be waiting for go at once. The others go behind
 * the next message or stream frame, at the latest RSB_SESSION_LAZY_NS after output first saw them.
 */

#include "proto/chan.h"
#include "proto/frame.h"
#include "proto/stream.h"

#define RSB_SESSION_LAZY_NS (10 * RSB_NSEC_PER_MSEC)

struct rsb_session;

struct rsb_session_config {
	size_t send_max;
	size_t window;
	uint64_t ping_ns;        /* our own interval */
	unsigned int silent_max; /* intervals without a frame before -ETIMEDOUT */
	unsigned int missed_max; /* ... before rsb_session_suspect(); 0: never */
	const struct rsb_chan_ops *chan_ops;
	void *chan_arg;
};

/* -EINVAL: send_max, window, ping_ns or silent_max is 0; -ENOMEM. */
rsb_nodiscard int rsb_session_new(
	const struct rsb_session_config *config, struct rsb_session **ret_session);
void rsb_session_free(struct rsb_session *session);
RSB_DEFINE_CLEANUP(struct rsb_session *, rsb_session_free)

struct rsb_stream *rsb_session_stream(struct rsb_session *session);
struct rsb_chans *rsb_session_chans(struct rsb_session *session);

/*
 * After welcome. zip: borrowed until detach, NULL when zstd was not agreed on. -ESTALE: rolled
 * back, see stream.h.
 */
rsb_nodiscard int rsb_session_attach(struct rsb_session *session, uint64_t now_ns,
	const struct rsb_stream_state *peer, struct rsb_zip *zip);
void rsb_session_detach(struct rsb_session *session);
bool rsb_session_attached(const struct rsb_session *session);
/*
 * As rsb_stream_restart(); every channel is forgotten, without a word to the peer, who does not
 * know any. -ENOMEM: nothing has changed.
 */
rsb_nodiscard int rsb_session_restart(
	struct rsb_session *session, void (*seen)(void *arg, struct rsb_bytes msg), void *arg);

/*
 * One frame of the peer, undecoded. Unknown types are skipped. Every error means: close the
 * connection. -EBADMSG: against the rules; -ECONNRESET: it said BYE; -ENOMEM. After -ESTALE (rolled
 * back, see chan.h) the session is over too.
 */
rsb_nodiscard int rsb_session_input(
	struct rsb_session *session, uint64_t now_ns, struct rsb_bytes frame);
/*
 * Appends one encoded frame to out: 1; 0: nothing to send. Order: control, messages, streams. Call
 * it until 0 whenever there is room for the output after input, tick, or work on stream or
 * channels. On an error close the connection.
 */
rsb_nodiscard int rsb_session_output(
	struct rsb_session *session, uint64_t now_ns, struct rsb_buf *out);
/* Time passes; output may have something afterwards. -ETIMEDOUT: the peer is dead or stuck. */
rsb_nodiscard int rsb_session_tick(struct rsb_session *session, uint64_t now_ns);
/* Nothing was heard of the peer for missed_max intervals. */
bool rsb_session_suspect(const struct rsb_session *session, uint64_t now_ns);
/* When to call tick next; 0: not attached. */
uint64_t rsb_session_deadline(const struct rsb_session *session);
/* Smoothed round trip of PING to PONG, ns; 0 unknown. */
uint64_t rsb_session_rtt(const struct rsb_session *session);

#endif
