/* SPDX-License-Identifier: MIT */
#ifndef RSB_SESSION_H
#define RSB_SESSION_H

/*
 * The state that one host and one sidecar share across connections: the numbered stream, the byte
 * streams, and the liveness of the connection of the moment. Both ends run this same code. Pure: frames
 * and now_ns in, frames out.
 *
 * Liveness: a PING every ping interval in which nothing else was sent; three intervals without any
 * frame from the peer is SUSPECT (the owner reconnects); acknowledging nothing for RSB_STUCK_MS, pongs or not, is -ETIMEDOUT.
 * The host's pings decide; the sidecar closes a connection that was silent for ten of the host's intervals.
 */

#include "proto/chan.h"
#include "proto/frame.h"
#include "proto/stream.h"

struct rsb_session;

struct rsb_session_config {
	size_t send_max;
	size_t window;
	uint64_t ping_ns;        /* our own interval */
	unsigned int silent_max; /* intervals without a frame before -ETIMEDOUT */
	const struct rsb_chan_ops *chan_ops;
	void *chan_arg;
};

rsb_nodiscard int rsb_session_new(
	const struct rsb_session_config *config, struct rsb_session **ret_session);
void rsb_session_free(struct rsb_session *session);
RSB_DEFINE_CLEANUP(struct rsb_session *, rsb_session_free)

struct rsb_stream *rsb_session_stream(struct rsb_session *session);
struct rsb_chans *rsb_session_chans(struct rsb_session *session);

/* After welcome. zip: borrowed until detach, NULL when zstd was not agreed on. -ESTALE: rolled back, see stream.h. */
rsb_nodiscard int rsb_session_attach(struct rsb_session *session, uint64_t now_ns,
	const struct rsb_stream_state *peer, struct rsb_zip *zip);
void rsb_session_detach(struct rsb_session *session);
bool rsb_session_attached(const struct rsb_session *session);

/* One frame of the peer, undecoded. -EBADMSG: close the connection. -ECONNRESET: it said BYE. Unknown types are skipped. */
rsb_nodiscard int rsb_session_input(
	struct rsb_session *session, uint64_t now_ns, struct rsb_bytes frame);
/* Appends one encoded frame to out: 1; 0: nothing to send. Order: control, messages, streams. */
rsb_nodiscard int rsb_session_output(
	struct rsb_session *session, uint64_t now_ns, struct rsb_buf *out);
/* Time passes. -ETIMEDOUT: the peer is dead or stuck. */
rsb_nodiscard int rsb_session_tick(struct rsb_session *session, uint64_t now_ns);
/* When to call tick next; 0: not attached. */
uint64_t rsb_session_deadline(const struct rsb_session *session);
/* Smoothed round trip of PING to PONG, ns; 0 unknown. */
uint64_t rsb_session_rtt(const struct rsb_session *session);

#endif
