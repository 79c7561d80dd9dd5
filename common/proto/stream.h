/* SPDX-License-Identifier: MIT */
#ifndef RSB_STREAM_H
#define RSB_STREAM_H

/*
 * One direction pair of numbered messages that outlives connections: pure state, no I/O, no clock.
 *
 * The invariant: a message that rsb_stream_send() took is delivered to the peer's rsb_stream_take()
 * exactly once and in the order in which numbers were given, over any number of connections, as long
 * as both ends keep this state; or the session ends and everybody is told.
 *
 *  - A message gets its number when its first frame leaves, not when it is queued, so that a class of
 *    higher priority overtakes what only waits. Within a class the order of sending is kept. Once numbered,
 *    a message is resent under its number, in order, from the start of the first one that the peer has not received.
 *  - It is kept until the peer says "received". The receiver says so when the message is whole in memory.
 *  - The sender never has more bytes outstanding than the peer's limit: a running total of message bytes,
 *    raised when the receiver's application takes a message. Acks are read always, whatever is full,
 *    and the host always takes replies at once; so two full sides cannot wait for each other.
 *  - Space can be reserved for a message to come (the reply to a request that is being executed), so that
 *    sending it later cannot fail.
 */

#include "proto/frame.h"

#include <stdbool.h>

enum rsb_class {
	RSB_CLASS_FIFO, /* mutations, and replies to them */
	RSB_CLASS_READ, /* the rest of the requests and replies */
	RSB_CLASS_N
};

struct rsb_stream;

/* A message that was received. Owned by whoever took it. */
struct rsb_msg {
	size_t size;
	uint8_t data[];
};

/* send_max: bytes queued, unacknowledged and reserved together. window: bytes that may wait to be taken. */
rsb_nodiscard int rsb_stream_new(size_t send_max, size_t window, struct rsb_stream **ret_stream);
void rsb_stream_free(struct rsb_stream *stream);
RSB_DEFINE_CLEANUP(struct rsb_stream *, rsb_stream_free)

/* Copies msg. -EAGAIN: no space now; -EMSGSIZE over RSB_MESSAGE_MAX or the peer's whole window; -ENOMEM. */
rsb_nodiscard int rsb_stream_send(
	struct rsb_stream *stream, enum rsb_class class, struct rsb_bytes msg);
/* -EAGAIN: no space now. */
rsb_nodiscard int rsb_stream_reserve(struct rsb_stream *stream, size_t size);
/* As send, after giving back a reservation of reserved >= msg.size bytes; fails only with -ENOMEM. */
rsb_nodiscard int rsb_stream_send_reserved(
	struct rsb_stream *stream, enum rsb_class class, struct rsb_bytes msg, size_t reserved);
void rsb_stream_unreserve(struct rsb_stream *stream, size_t reserved);
size_t rsb_stream_space(const struct rsb_stream *stream);

/* The oldest whole message not yet taken, borrowed; NULL: none. Look, then take. */
const struct rsb_msg *rsb_stream_peek(const struct rsb_stream *stream);
/* The caller frees it with free(3). Raises the limit of the peer. */
struct rsb_msg *rsb_stream_take(struct rsb_stream *stream);

/* ---- connections ---- */

/* What we say in hello and welcome, and what the peer said. */
struct rsb_stream_state {
	uint64_t received; /* messages received */
	uint64_t acked;    /* of our messages: known to be received by the peer */
	uint64_t limit;    /* total bytes that the peer may send, as of now */
};
void rsb_stream_state(const struct rsb_stream *stream, struct rsb_stream_state *ret_state);
/*
 * A connection begins: rewinds to peer->received. -ESTALE: the two states cannot belong to the same
 * history (either side acknowledged more than the other holds): one of them was rolled back.
 */
rsb_nodiscard int rsb_stream_attach(struct rsb_stream *stream, const struct rsb_stream_state *peer);
/* The connection is gone; a message half received is dropped. */
void rsb_stream_detach(struct rsb_stream *stream);

/* A MESSAGE or ACK frame of the peer. -EBADMSG: number or size against the rules: close the connection. */
rsb_nodiscard int rsb_stream_input(struct rsb_stream *stream, const struct rsb_frame *frame);
/* The next frame to send: 1 and a frame whose payload views our memory until the next call; 0 nothing to send now. */
rsb_nodiscard int rsb_stream_output(struct rsb_stream *stream, struct rsb_frame *ret_frame);
/* Something is numbered and not acknowledged (for RSB_STUCK_MS). */
bool rsb_stream_waits_for_ack(const struct rsb_stream *stream);

#endif
