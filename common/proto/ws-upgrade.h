/* SPDX-License-Identifier: MIT */
#ifndef RSB_WS_UPGRADE_H
#define RSB_WS_UPGRADE_H

/*
 * The opening handshake of RFC 6455 (section 4), both sides: one GET with nothing but its head, one
 * answer. Strict: HTTP/1.1, no folded lines, no control bytes, none of the headers that decide
 * twice, no body, no extension, no subprotocol. Pure: bytes in, bytes out.
 */

#include "util/buf.h"

#define RSB_WS_KEY_SIZE 24      /* base64 of 16 bytes */
#define RSB_WS_HEADERS_MAX 8192 /* bytes of the upgrade request or response */

/* key: fresh RSB_WS_KEY_SIZE characters + NUL. */
rsb_nodiscard int rsb_ws_key(char key[static RSB_WS_KEY_SIZE + 1]);

struct rsb_ws_header {
	const char *name;
	const char *value;
};
/*
 * Appends the GET. host as for the Host header. Headers are ours or the user's: no CR or LF in them
 * (-EINVAL).
 */
rsb_nodiscard int rsb_ws_request(const char *host, const char *path, const char *key,
	const struct rsb_ws_header *headers, size_t n_header, struct rsb_buf *out);
/*
 * Looks for the whole response in the head of in. 0: not complete yet; > 0: bytes to consume,
 * upgraded. -EPROTO (no valid upgrade), -EMSGSIZE; *ret_status is the HTTP status once it was read,
 * else 0.
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

#endif
