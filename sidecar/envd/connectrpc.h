/* SPDX-License-Identifier: MIT */
#ifndef RSB_CONNECTRPC_H
#define RSB_CONNECTRPC_H

/*
 * The Connect protocol's envelopes and error codes, as far as JSON bodies need them. Pure: bytes
 * in, bytes out. An envelope is a flag byte, a big-endian length and the message.
 */

#include "util/buf.h"

#define RSB_CONNECTRPC_HEAD 5U
#define RSB_CONNECTRPC_MESSAGE_MAX ((size_t)4 << 20)

#define RSB_CONNECTRPC_MESSAGE 0x00
#define RSB_CONNECTRPC_COMPRESSED 0x01
#define RSB_CONNECTRPC_END 0x02

enum rsb_connectrpc_code {
	RSB_CONNECTRPC_OK,
	RSB_CONNECTRPC_INVALID_ARGUMENT,
	RSB_CONNECTRPC_DEADLINE_EXCEEDED,
	RSB_CONNECTRPC_NOT_FOUND,
	RSB_CONNECTRPC_RESOURCE_EXHAUSTED,
	RSB_CONNECTRPC_UNIMPLEMENTED,
	RSB_CONNECTRPC_INTERNAL,
	RSB_CONNECTRPC_UNAUTHENTICATED,
};

const char *rsb_connectrpc_name(enum rsb_connectrpc_code code);
unsigned int rsb_connectrpc_status(enum rsb_connectrpc_code code);

rsb_nodiscard int rsb_connectrpc_frame(
	struct rsb_buf *out, uint8_t flags, struct rsb_bytes message);
/* The end-of-stream envelope; message may be NULL with RSB_CONNECTRPC_OK. */
rsb_nodiscard int rsb_connectrpc_end(
	struct rsb_buf *out, enum rsb_connectrpc_code code, const char *message);
/* {"code","message"} of a unary error. */
rsb_nodiscard int rsb_connectrpc_error(
	struct rsb_buf *out, enum rsb_connectrpc_code code, const char *message);

/*
 * The first envelope of in: 1 and its parts, borrowed until in changes; 0 when it is not complete.
 * -EMSGSIZE over RSB_CONNECTRPC_MESSAGE_MAX, -EBADMSG for a flag that nobody asked for. The caller
 * consumes RSB_CONNECTRPC_HEAD + size.
 */
rsb_nodiscard int rsb_connectrpc_next(
	const struct rsb_buf *in, uint8_t *ret_flags, struct rsb_bytes *ret_message);

#endif
