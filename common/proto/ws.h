/* SPDX-License-Identifier: MIT */
#ifndef RSB_WS_H
#define RSB_WS_H

/*
 * RFC 6455 as this link uses it: binary messages without fragmentation, one for each frame of
 * proto/frame.h. A pure state machine (bytes in, bytes out), strict: masks must be there from a
 * client and absent from a server, reserved bits are zero, control frames hold at most 125 bytes
 * and are not fragmented, lengths are minimal, payload at most RSB_FRAME_MAX; text frames are
 * refused (1003), fragments joined up to RSB_FRAME_MAX. Pings of the peer are answered; its close
 * is answered once.
 *
 * Own code instead of libwebsockets for measured reasons (ARCHITECTURE.md); libwebsockets is the
 * peer in the tests.
 */

#include <stdbool.h>

#include "proto/ws-upgrade.h" /* IWYU pragma: export */
#include "util/buf.h"

enum rsb_ws_role { RSB_WS_CLIENT, RSB_WS_SERVER };

#define RSB_WS_MASKS 64

struct rsb_ws {
	enum rsb_ws_role role;
	struct rsb_buf partial; /* fragments joined so far */
	bool in_fragments;
	bool close_sent;
	bool close_received;
	/*
	 * Client: masks that no peer can foretell (RFC 6455 10.3), drawn from getrandom(2) by the
	 * lot.
	 */
	uint32_t masks[RSB_WS_MASKS];
	size_t n_mask; /* not used yet */
};

rsb_nodiscard int rsb_ws_init(struct rsb_ws *ws, enum rsb_ws_role role);
void rsb_ws_done(struct rsb_ws *ws);

/*
 * Takes at most one message out of in. Payload is unmasked in place (in is changed) and viewed by
 * *ret_msg until in moves. Answers to control frames are appended to out.
 *	1	a message; consume *ret_used bytes after use
 *	0	more bytes are needed (*ret_used may be > 0: control frames, fragments)
 *	-EPROTO, -EMSGSIZE, -EBADMSG: broken; a close frame with 1002, 1009 or 1003 was appended
 *		to out; close after sending
 *	-ECONNRESET: the peer closed in order
 */
rsb_nodiscard int rsb_ws_input(struct rsb_ws *ws, struct rsb_buf *in, struct rsb_buf *out,
	struct rsb_bytes *ret_msg, size_t *ret_used);
/* Appends one binary message. -ENOTCONN after a close was sent. */
rsb_nodiscard int rsb_ws_send(struct rsb_ws *ws, struct rsb_bytes msg, struct rsb_buf *out);
/* Begins the closing handshake. */
rsb_nodiscard int rsb_ws_close(struct rsb_ws *ws, uint16_t code, struct rsb_buf *out);

#endif
