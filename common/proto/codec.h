/* SPDX-License-Identifier: MIT */
#ifndef RSB_CODEC_H
#define RSB_CODEC_H

/*
 * One encoder and one decoder for all messages, walking the descriptors of op.h.
 *
 * Decoding writes a whole struct: members that the message does not have are zero. It checks kinds,
 * limits, name rules (util/str.h) and, element by element, the lists; so a handler never meets a
 * value outside structs.def. It allocates nothing; views point into the input.
 *
 * A call message is the array [op, id, after, request]: id names the waiting call (not 0), after
 * the FIFO number of the mutation that must have been executed before (0: none). A reply is [0, id,
 * error, reply]: error is proto/errmap.h's number, 0 for success; without success the reply is
 * missing.
 */

#include "proto/op.h"
#include "util/buf.h"

/*
 * version: fields with a later since are left out (they can only be a tail). -EMSGSIZE, -ENOMEM,
 * -EINVAL (a value over its limit).
 */
rsb_nodiscard int rsb_codec_encode(const struct rsb_message_desc *desc, const void *msg,
	uint32_t version, struct rsb_buf *out);
/*
 * ret_msg has desc->size bytes. The input must be exactly one message. -EBADMSG, -EMSGSIZE, -EINVAL
 * (bad name).
 */
rsb_nodiscard int rsb_codec_decode(
	const struct rsb_message_desc *desc, struct rsb_bytes in, void *ret_msg);

/* Lists. To build: start with an empty buf, append, then rsb_seq_of(). */
rsb_nodiscard int rsb_seq_append(const struct rsb_message_desc *desc, const void *element,
	uint32_t version, struct rsb_buf *out);
rsb_nodiscard int rsb_seq_append_bytes(struct rsb_bytes element, struct rsb_buf *out);
static inline struct rsb_seq
rsb_seq_of(const struct rsb_buf *buf, uint64_t n)
{
	return (struct rsb_seq){ .n = n, .raw = rsb_buf_view(buf) };
}

/*
 * To walk: 1 with an element, 0 at the end, negative errno on bad bytes (only when seq was not
 * decoded by us).
 */
rsb_nodiscard int rsb_seq_next(
	struct rsb_seq *seq, const struct rsb_message_desc *desc, void *ret_element);
rsb_nodiscard int rsb_seq_next_bytes(struct rsb_seq *seq, struct rsb_bytes *ret_element);

/* Envelopes. */
struct rsb_call_head {
	uint32_t op;           /* a number of the table, 0 = reply */
	uint64_t id;           /* of the call */
	uint64_t after;        /* request: FIFO number; 0 = none */
	int error;             /* reply: 0 or negative errno of this machine */
	struct rsb_bytes body; /* the encoded request or reply; empty on error */
};

/* Appends a whole request message. req may be NULL for rsb_empty. */
rsb_nodiscard int rsb_codec_request(uint32_t op, uint64_t id, uint64_t after, const void *req,
	uint32_t version, struct rsb_buf *out);
/* error: 0 or negative errno. rep is ignored on error; may be NULL for rsb_empty. */
rsb_nodiscard int rsb_codec_reply(uint32_t op, uint64_t id, int error, const void *rep,
	uint32_t version, struct rsb_buf *out);
/* op numbers that we do not know are passed through: the caller answers EOPNOTSUPP. -EBADMSG. */
rsb_nodiscard int rsb_codec_head(struct rsb_bytes in, struct rsb_call_head *ret_head);

/* An upper bound for the encoded size of a reply to op, for reservations. */
size_t rsb_codec_reply_max(uint32_t op);

#endif
