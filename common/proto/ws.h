/* SPDX-License-Identifier: MIT */
#ifndef RSB_WS_H
#define RSB_WS_H

/*
 * RFC 6455 as this link uses it: binary messages without fragmentation, one for each frame of
 * proto/frame.h. A pure state machine (bytes in, bytes out), strict: masks must be there from a client and
 * absent from a server, reserved bits are zero, control frames hold at most 125 bytes and are not
 * fragmented, lengths are minimal, payload at most RSB_FRAME_MAX; text frames are refused (1003),
 * fragments joined up to RSB_FRAME_MAX. Pings of the peer are answered; its close is answered once.
 *
 * Own code instead of libwebsockets for measured reasons (ARCHITECTURE.md); libwebsockets is the peer in the tests.
 */

#include "util/buf.h"

#include <stdbool.h>

enum rsb_ws_role { RSB_WS_CLIENT, RSB_WS_SERVER };

#define RSB_WS_KEY_SIZE 24      /* base64 of 16 bytes */
#define RSB_WS_HEADERS_MAX 8192 /* bytes of the upgrade request or response */

/* ---- opening handshake (section 4) ---- */

/* key: fresh RSB_WS_KEY_SIZE characters + NUL. */
rsb_nodiscard int rsb_ws_key(char key[static RSB_WS_KEY_SIZE + 1]);

struct rsb_ws_header {
	const char *name;
	const char *value;
};
/* Appends the GET. host as for the Host header. Headers are ours or the user's: no CR or LF in them (-EINVAL). */
rsb_nodiscard int rsb_ws_request(const char *host, const char *path, const char *key,
	const struct rsb_ws_header *headers, size_t n_header, struct rsb_buf *out);
/*
 * Looks for the whole response in the head of in. 0: not complete yet; > 0: bytes to consume, upgraded.
 * -EPROTO (no valid upgrade), -EMSGSIZE; *ret_status is the HTTP status once it was read, else 0.
 */
rsb_nodiscard int rsb_ws_response(struct rsb_bytes in, const char *key, int *ret_status);

struct rsb_ws_upgrade {
	struct rsb_bytes path;
	struct rsb_bytes key;  /* Sec-WebSocket-Key */
	struct rsb_bytes auth; /* X-Rsb-Auth; empty when absent */
};
/* Server: as rsb_ws_response(). Views into in. -EPROTO: answer 400, 426 or 404 and close. */
rsb_nodiscard int rsb_ws_accept(struct rsb_bytes in, struct rsb_ws_upgrade *ret_upgrade);
/* Appends the 101 for key. */
rsb_nodiscard int rsb_ws_accept_reply(struct rsb_bytes key, struct rsb_buf *out);
/* Appends a whole refusal with Connection: close and an empty body. */
rsb_nodiscard int rsb_ws_refuse(int status, struct rsb_buf *out);

/* ---- frames ---- */

struct rsb_ws {
	enum rsb_ws_role role;
	struct rsb_buf partial; /* fragments joined so far */
	bool in_fragments;
	bool close_sent;
	bool close_received;
	uint32_t
		mask_seed; /* client: fresh masks come from here, seeded at init (RFC 6455 5.3, 10.3) */
};

rsb_nodiscard int rsb_ws_init(struct rsb_ws *ws, enum rsb_ws_role role);
void rsb_ws_done(struct rsb_ws *ws);

/*
 * Takes at most one message out of in. Payload is unmasked in place (in is changed) and viewed by *ret_msg until in
 * moves. Answers to control frames are appended to out.
 *	1	a message; consume *ret_used bytes after use
 *	0	more bytes are needed (*ret_used may be > 0: control frames, fragments)
 *	-EPROTO, -EMSGSIZE, -EBADMSG: broken; a close frame with 1002, 1009 or 1003 was appended to out; close after sending
 *	-ECONNRESET: the peer closed in order
 */
rsb_nodiscard int rsb_ws_input(struct rsb_ws *ws, struct rsb_buf *in, struct rsb_buf *out,
	struct rsb_bytes *ret_msg, size_t *ret_used);
/* Appends one binary message. -ENOTCONN after a close was sent. */
rsb_nodiscard int rsb_ws_send(struct rsb_ws *ws, struct rsb_bytes msg, struct rsb_buf *out);
/* Begins the closing handshake. */
rsb_nodiscard int rsb_ws_close(struct rsb_ws *ws, uint16_t code, struct rsb_buf *out);

#endif
