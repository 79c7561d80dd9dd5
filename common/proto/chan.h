/* SPDX-License-Identifier: MIT */
#ifndef RSB_CHAN_H
#define RSB_CHAN_H

/*
 * Byte streams with credit: process input and output, archives. Each goes one way, is named by a
 * number that is never used again in its session, and counts offsets from the start of the whole
 * stream, so it goes on over a new connection where the receiver says it is. Pure state, no I/O, no
 * clock.
 *
 * Sender: keeps what it sent until the receiver has it, sends at most up to the receiver's limit.
 * Receiver: hands bytes up at once and in order, exactly once; raises the limit when the
 * application says that it consumed. The window starts at RSB_CHAN_WINDOW and doubles, up to
 * window_max, while the application keeps up; so memory is bounded by the window and a stopped
 * reader stops the far writer.
 *
 * Who comes first. A request makes the sidecar's end of a stream, and frames of streams can
 * overtake requests. So on numbers that are 0 mod 4 (host to sidecar) the sender has no credit
 * until the first CREDIT says that the receiver is there. On the others (sidecar to host) the host
 * opens its receiver before it sends the request, and the sender starts with a credit of
 * RSB_CHAN_WINDOW.
 *
 * After a new connection a sender waits for the CREDIT that says where to go on, and asks for it
 * with an empty STREAM frame if the receiver was there before and has not everything. An end counts
 * as one more byte received. The last frame of a channel that was closed, RESET or CREDIT, is
 * repeated over connections until rsb_chans_settle() says that the peer has it. The RESET of a
 * channel whose other end did not come yet is kept for it, up to RSB_ROSTER_EARLY_MAX of them. So
 * an end that began is never unknown to the other one; a STREAM, or a CREDIT from where a sender
 * must have been, of an unknown channel is answered by RESET with ESTALE, and means to an end that
 * began that one side was rolled back.
 */

#include <stdbool.h>

#include "proto/frame.h"
#include "util/map.h"

#define RSB_CHAN_WINDOW_MAX ((size_t)8 << 20)

/* Streams of a process (or archive) that the host numbered proc. */
#define RSB_CHAN_STDIN(proc) ((proc)*4 + 0)
#define RSB_CHAN_STDOUT(proc) ((proc)*4 + 1)
#define RSB_CHAN_STDERR(proc) ((proc)*4 + 2)
#define RSB_CHAN_PROC(chan) ((chan) / 4)

struct rsb_chans; /* all streams of one session, both directions */

struct rsb_chan_ops {
	/* In order, without gaps. data is borrowed. fin: this was the last. */
	void (*data)(void *arg, uint64_t chan, struct rsb_bytes data, bool fin);
	/* Sender: there is room again after a short write, or a finished stream is drained. */
	void (*writable)(void *arg, uint64_t chan);
	/*
	 * The other end gave up; r is a negative errno. The channel is closed already. Not called
	 * for a receiver that has everything.
	 */
	void (*reset)(void *arg, uint64_t chan, int r);
};

/* Callbacks come from rsb_chans_input() alone and may call back into this module, except for free,
 * input and output. */
rsb_nodiscard int rsb_chans_new(
	const struct rsb_chan_ops *ops, void *arg, struct rsb_chans **ret_chans);
void rsb_chans_free(struct rsb_chans *chans);
RSB_DEFINE_CLEANUP(struct rsb_chans *, rsb_chans_free)

/*
 * buffer_max > 0. -EMFILE over RSB_CHANS_MAX (those that are closed but not settled count),
 * -EEXIST, -ENOMEM.
 */
rsb_nodiscard int rsb_chan_open_sender(struct rsb_chans *chans, uint64_t chan, size_t buffer_max);
/* window_max below RSB_CHAN_WINDOW counts as that. Errors as above. */
rsb_nodiscard int rsb_chan_open_receiver(struct rsb_chans *chans, uint64_t chan, size_t window_max);
/* For us it is over. A peer for which it is not gets a reset with -EPIPE. */
void rsb_chan_close(struct rsb_chans *chans, uint64_t chan);
/* The same with a reason, a negative errno other than -ESTALE. Unknown channels are left alone. */
void rsb_chan_reset(struct rsb_chans *chans, uint64_t chan, int r);

/*
 * Bytes taken, less than given when the buffer is full; -EPIPE (finished, reset or unknown),
 * -ENOMEM.
 */
rsb_nodiscard int rsb_chan_write(struct rsb_chans *chans, uint64_t chan, struct rsb_bytes data);
/* Room in the buffer of a sender; 0 for an unknown one. */
size_t rsb_chan_room(const struct rsb_chans *chans, uint64_t chan);
/* End of stream after what was written. -EPIPE as write. */
rsb_nodiscard int rsb_chan_finish(struct rsb_chans *chans, uint64_t chan);
/* The receiver has everything, the end included. Unknown channels count as drained. */
bool rsb_chan_drained(const struct rsb_chans *chans, uint64_t chan);
/* Receiver: the application is done with size more bytes, of those that it was given. */
void rsb_chan_consume(struct rsb_chans *chans, uint64_t chan, size_t size);
/* Total bytes written (sender) or received (receiver) so far; 0 for an unknown one. */
uint64_t rsb_chan_offset(const struct rsb_chans *chans, uint64_t chan);
/* Sender: bytes written that were not yet output on this connection; 0 for an unknown one. */
uint64_t rsb_chan_unsent(const struct rsb_chans *chans, uint64_t chan);

/* ---- connections ---- */

/*
 * A connection begins: senders wait for a CREDIT that says where to go on, receivers send theirs.
 */
void rsb_chans_attach(struct rsb_chans *chans);
void rsb_chans_detach(struct rsb_chans *chans);
/*
 * STREAM, CREDIT and RESET. -EBADMSG: against the rules; -ENOMEM: close the connection. -ESTALE:
 * where the peer wants to go on is not in our history: one end was rolled back, the session is
 * over.
 */
rsb_nodiscard int rsb_chans_input(struct rsb_chans *chans, const struct rsb_frame *frame);

enum rsb_chans_urge {
	RSB_CHANS_URGENT, /* RESET, and CREDIT for which the peer may be waiting */
	RSB_CHANS_CREDIT, /* these, and every other CREDIT that has news */
	RSB_CHANS_STREAM, /* the urgent ones, and STREAM of the channels in turn */
};
/* The next frame. STREAM while fewer than in_flight_max bytes are on their way in all. As
 * rsb_stream_output(). */
rsb_nodiscard int rsb_chans_output(struct rsb_chans *chans, enum rsb_chans_urge urge,
	size_t in_flight_max, struct rsb_frame *ret_frame);
/* A CREDIT has news that is not urgent yet. */
bool rsb_chans_credit_due(const struct rsb_chans *chans);

/* Frames sent so far that have to be settled, and how many of them are not. */
uint64_t rsb_chans_mark(const struct rsb_chans *chans);
size_t rsb_chans_unsettled(const struct rsb_chans *chans);
/* The peer has processed all that was output when rsb_chans_mark() was this. */
void rsb_chans_settle(struct rsb_chans *chans, uint64_t mark);

/* Bytes that the peer said to have received on this connection, and bytes sent and not yet
 * received by it. */
uint64_t rsb_chans_delivered(const struct rsb_chans *chans);
uint64_t rsb_chans_in_flight(const struct rsb_chans *chans);

#endif
