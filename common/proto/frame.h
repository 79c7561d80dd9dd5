/* SPDX-License-Identifier: MIT */
#ifndef RSB_FRAME_H
#define RSB_FRAME_H

/*
 * A frame is one WebSocket binary message (or one packet on the control socket): a fixed head of 18
 * bytes (type u8, flags u8, a u64, b u64, big-endian), then the payload; together at most
 * RSB_FRAME_MAX.
 *
 *	type		a			b			payload
 *	CHALLENGE	0			0			rsb_challenge
 *	HELLO		0			0			rsb_hello
 *	WELCOME		0			0			rsb_welcome
 *	REFUSE		0			0			rsb_refuse
 *	MESSAGE		number (0: ctl socket)	0			part of a message
 *	ACK		messages received	byte limit		-
 *	PING, PONG	token			0			-
 *	STREAM		channel			offset			bytes
 *	CREDIT		channel			limit			received, u64
 *	RESET		channel			error (errmap)		-
 *	BYE		0			0			- (the end, in order)
 *
 * A message of several frames has MORE on all but the last; they stand next to each other among the
 * MESSAGE frames. ZSTD: the payload is one zstd frame of it, its content size declared and at most
 * RSB_FRAME_MAX. FIN on STREAM: this ends at offset + size.
 */

#include "util/buf.h"

#define RSB_FRAME_HEAD 18u
#define RSB_FRAME_PAYLOAD_MAX (RSB_FRAME_MAX - RSB_FRAME_HEAD)

enum rsb_frame_type {
	RSB_FRAME_CHALLENGE = 1,
	RSB_FRAME_HELLO = 2,
	RSB_FRAME_WELCOME = 3,
	RSB_FRAME_REFUSE = 4,
	RSB_FRAME_MESSAGE = 5,
	RSB_FRAME_ACK = 6,
	RSB_FRAME_PING = 7,
	RSB_FRAME_PONG = 8,
	RSB_FRAME_STREAM = 9,
	RSB_FRAME_CREDIT = 10,
	RSB_FRAME_RESET = 11,
	RSB_FRAME_BYE = 12,
};

enum rsb_frame_flag {
	RSB_FRAME_MORE = 1 << 0,
	RSB_FRAME_ZSTD = 1 << 1,
	RSB_FRAME_FIN = 1 << 2,
};

struct rsb_frame {
	uint8_t type;
	uint8_t flags;
	uint64_t a;
	uint64_t b;
	struct rsb_bytes payload; /* a view; without ZSTD once decoded */
};

/*
 * zstd contexts and scratch space of one connection, reused from frame to frame. Not thread-safe.
 */
struct rsb_zip;
rsb_nodiscard int rsb_zip_new(struct rsb_zip **ret_zip);
void rsb_zip_free(struct rsb_zip *zip);
RSB_DEFINE_CLEANUP(struct rsb_zip *, rsb_zip_free)

/*
 * Appends head and payload. zip: compress MESSAGE and STREAM payloads of RSB_ZSTD_MIN bytes and
 * more when that saves at least an eighth; NULL: never. -EMSGSIZE, -ENOMEM.
 */
rsb_nodiscard int rsb_frame_encode(
	const struct rsb_frame *frame, struct rsb_zip *zip, struct rsb_buf *out);
/*
 * The payload of ret_frame views in, or zip's scratch space until the next call on it. Unknown
 * types are -EOPNOTSUPP (skip them), unknown flags and short frames -EBADMSG; ZSTD without zip
 * -EBADMSG.
 */
rsb_nodiscard int rsb_frame_decode(
	struct rsb_bytes in, struct rsb_zip *zip, struct rsb_frame *ret_frame);

#endif
