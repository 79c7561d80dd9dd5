/* SPDX-License-Identifier: MIT */
#ifndef RSB_ENVELOPE_H
#define RSB_ENVELOPE_H

/*
 * The frames of the Connect protocol (https://connectrpc.com/docs/protocol): one flag byte,
 * four bytes of length, big-endian, then that many bytes. They do not line up with what the
 * network delivers. Pure.
 */

#include "util/buf.h"

#define RSB_ENVELOPE_MAX ((size_t)1 << 20)
#define RSB_ENVELOPE_END 2 /* flag of the last frame */

/* Appends one frame without flags. */
rsb_nodiscard int rsb_envelope_write(struct rsb_bytes payload, struct rsb_buf *out);

struct rsb_envelope_reader {
	struct rsb_buf in;
	size_t used; /* of in: the frame that was given out last */
};

void rsb_envelope_reader_init(struct rsb_envelope_reader *reader);
void rsb_envelope_reader_done(struct rsb_envelope_reader *reader);
rsb_nodiscard int rsb_envelope_reader_add(
	struct rsb_envelope_reader *reader, struct rsb_bytes data);
/*
 * 1: a frame, viewed until the next call; 0: more bytes are needed; -EMSGSIZE; -EBADMSG:
 * compressed, which nobody asked for.
 */
rsb_nodiscard int rsb_envelope_reader_next(
	struct rsb_envelope_reader *reader, uint8_t *ret_flags, struct rsb_bytes *ret_payload);

#endif
