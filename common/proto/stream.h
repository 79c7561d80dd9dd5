/* SPDX-License-Identifier: MIT */
#ifndef RSB_STREAM_H
#define RSB_STREAM_H

/*
 * One direction pair of numbered messages that outlives connections: pure state, no I/O, no clock.
 *
 * The invariant: a message that rsb_stream_send() took is delivered to the peer's
 * rsb_stream_take() exactly once and in the order in which numbers were given, over any number of
 * connections, as long as both ends keep this state; or the session ends and everybody is told.
 *
 *  - A message gets its number when its first frame leaves, not when it is queued, so that a class
 *    of higher priority overtakes what only waits. Within a class the order of sending is kept. Of
 *    two classes that both wait, READ gets one message after every RSB_STREAM_FIFO_RUN of FIFO.
 *    Once numbered, a message is resent under its number, in order, from the start of the first one
 *    that the peer has not received.
 *  - It is kept until the peer says "received". The receiver says so when the message is whole in
 *    memory.
 *  - A message costs its size and RSB_STREAM_COST, so that a flood of tiny ones is bounded too. A
 *    message may begin while the cost of all before it, since the session began, is below the
 *    peer's limit; so at most one message reaches over the limit, and a message larger than the
 *    window is no dead end. The limit rises when the receiver's application takes a message.
 *  - Acknowledgements are read always, whatever is full, and the host always takes replies at
 *    once; so two full sides cannot wait for each other.
 *  - Space can be reserved for a message to come (the reply to a request that is being executed),
 *    so that sending it later cannot fail.
 *
 * All functions are for one thread, or under one lock of the owner.
 */

#include <stdbool.h>

#include "proto/frame.h"

#define RSB_STREAM_COST 64u    /* bytes that a message counts beyond its size */
#define RSB_STREAM_FIFO_RUN 4u /* FIFO messages in a row while a READ message waits */

/*
 * A request that waits over there for a mutation must not overtake it: space for its reply is
 * reserved when it is admitted, and enough of such requests would leave none for the mutation.
 */
enum rsb_class {
	/* mutations, requests that wait for one (after), and the replies to these */
	RSB_CLASS_FIFO,
	RSB_CLASS_READ, /* the rest of the requests and replies */
	RSB_CLASS_N
};

struct rsb_stream;

/* A message that was received. Owned by whoever took it. */
struct rsb_msg {
	struct rsb_msg *next; /* the stream's, until taken; NULL afterwards */
	size_t size;
	uint8_t data[];
};

/*
 * send_max: what is queued, unacknowledged and reserved may cost together. window: what may wait to
 * be taken may cost, plus one message. -EINVAL: one of them is 0; -ENOMEM.
 */
rsb_nodiscard int rsb_stream_new(size_t send_max, size_t window, struct rsb_stream **ret_stream);
void rsb_stream_free(struct rsb_stream *stream);
RSB_DEFINE_CLEANUP(struct rsb_stream *, rsb_stream_free)

/*
 * Copies msg. -EAGAIN: no space now; -EMSGSIZE: over RSB_MESSAGE_MAX or never any space; -ENOMEM.
 */
rsb_nodiscard int rsb_stream_send(
	struct rsb_stream *stream, enum rsb_class class, struct rsb_bytes msg);
/*
 * Space for one message of up to size bytes. It is given back as a whole, by one of the two
 * functions below. Errors as send.
 */
rsb_nodiscard int rsb_stream_reserve(struct rsb_stream *stream, size_t size);
/*
 * As send, and gives back a reservation of reserved >= msg.size bytes. Fails only with -ENOMEM; the
 * reservation is kept then. mark: for rsb_stream_acked_mark(); 0: none.
 */
rsb_nodiscard int rsb_stream_send_reserved(struct rsb_stream *stream, enum rsb_class class,
	struct rsb_bytes msg, size_t reserved, uint64_t mark);
void rsb_stream_unreserve(struct rsb_stream *stream, size_t reserved);
/*
 * Shows fn every message that has no number yet, so that none of it was sent, in the order of
 * each class; it may change the bytes and says how many of them stay, 0: the message goes.
 */
typedef size_t (*rsb_stream_edit_fn)(void *arg, uint8_t *data, size_t size);
void rsb_stream_edit(struct rsb_stream *stream, rsb_stream_edit_fn fn, void *arg);
/* Size of the largest message that could be sent or reserved now. */
size_t rsb_stream_space(const struct rsb_stream *stream);

/* The oldest whole message not yet taken, borrowed; NULL: none. Look, then take. */
const struct rsb_msg *rsb_stream_peek(const struct rsb_stream *stream);
/* The caller frees it with free(3); NULL: none. Raises the limit of the peer. */
struct rsb_msg *rsb_stream_take(struct rsb_stream *stream);

/* ---- connections ---- */

/* What we say in hello and welcome, and what the peer said. */
struct rsb_stream_state {
	uint64_t received; /* messages received */
	uint64_t acked;    /* of our messages: known to be received by the peer */
	uint64_t limit;  /* total cost that the peer's messages may have reached when one begins */
	uint64_t digest; /* of the messages received, their order included; 0: not said */
};
void rsb_stream_state(const struct rsb_stream *stream, struct rsb_stream_state *ret_state);
/*
 * A connection begins: rewinds to peer->received. -ESTALE: the two states cannot belong to the same
 * history: one end was rolled back to an older copy of its memory. Counts alone do not show that
 * when the copy has sent other messages since, into the connection that was dead already; the
 * digest does. Nothing has changed then, and the session is over.
 */
rsb_nodiscard int rsb_stream_attach(struct rsb_stream *stream, const struct rsb_stream_state *peer);
/* The connection is gone; a message half received is dropped. */
void rsb_stream_detach(struct rsb_stream *stream);
/*
 * The peer's process is another one, which begins a stream of its own: so does this end. What was
 * not acknowledged is sent again, in order, and seen() is told of each; what was received and not
 * taken is dropped. Reservations stay.
 */
void rsb_stream_restart(
	struct rsb_stream *stream, void (*seen)(void *arg, struct rsb_bytes msg), void *arg);

/*
 * A MESSAGE or ACK frame of the peer. -EBADMSG: against the rules; -ENOMEM. Either way the
 * connection has to be closed; nothing is lost by that.
 */
rsb_nodiscard int rsb_stream_input(struct rsb_stream *stream, const struct rsb_frame *frame);
/*
 * The next MESSAGE frame: 1 and a frame whose payload views our memory until the next call; 0
 * nothing to send now.
 */
rsb_nodiscard int rsb_stream_output(struct rsb_stream *stream, struct rsb_frame *ret_frame);

enum rsb_stream_ack {
	RSB_STREAM_ACK_NONE,   /* the peer knows all */
	RSB_STREAM_ACK_LAZY,   /* soon, best beside something else */
	RSB_STREAM_ACK_URGENT, /* now: the peer may be waiting for it */
};
enum rsb_stream_ack rsb_stream_ack_due(const struct rsb_stream *stream);
/* The ACK frame, whatever is due; it counts as sent. */
void rsb_stream_output_ack(struct rsb_stream *stream, struct rsb_frame *ret_frame);

/* Messages of ours that the peer is known to have. */
uint64_t rsb_stream_acked(const struct rsb_stream *stream);
/* The highest mark among them, those before a restart included. */
uint64_t rsb_stream_acked_mark(const struct rsb_stream *stream);
/* Something is numbered and not acknowledged (for RSB_STUCK_MS). */
bool rsb_stream_waits_for_ack(const struct rsb_stream *stream);

#endif
