/* SPDX-License-Identifier: MIT */
#ifndef RSB_FAR_END_H
#define RSB_FAR_END_H

/*
 * The wire of a sidecar without the sidecar: a real upgrade, handshake and session, answers by
 * whoever uses it, and ways round the session to say what a sidecar never would. One connection at
 * a time; each begins a session and an epoch of its own. One thread.
 */

#include "proto/codec.h"
#include "proto/handshake.h"
#include "proto/session.h"
#include "proto/ws.h"
#include "util/secret.h"

enum far_end_phase { FAR_END_NONE, FAR_END_UPGRADE, FAR_END_HELLO, FAR_END_OPEN };

struct far_end {
	struct rsb_secret key;
	int listen_fd;
	void (*call)(struct far_end *far, const struct rsb_call_head *head);
	const struct rsb_chan_ops *chan_ops;

	int fd;
	enum far_end_phase phase;
	struct rsb_ws ws;
	struct rsb_handshake hs;
	struct rsb_buf in, out;
	struct rsb_session *session;
	char epoch[9];
};

/* Serves for ever; returns only with an error. */
rsb_nodiscard int far_end_run(struct far_end *far);

/* In order, by the session. error as rsb_codec_reply(). */
void far_end_reply(
	struct far_end *far, const struct rsb_call_head *head, int error, const void *rep);
/* Any bytes as a numbered message. */
void far_end_message(struct far_end *far, struct rsb_bytes msg);
/* Any frame, at once, whatever the session thinks of it. */
void far_end_frame(struct far_end *far, const struct rsb_frame *frame);

#endif
