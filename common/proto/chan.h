/* SPDX-License-Identifier: MIT */
#ifndef RSB_CHAN_H
#define RSB_CHAN_H

/*
 * Byte streams with credit: process input and output, archives. Each goes one way, is named by a number
 * that is never used again in its session, and counts offsets from the start of the whole stream, so it
 * goes on over a new connection where the receiver says it is. Pure state, no I/O, no clock.
 *
 * Sender: keeps what it sent until the receiver has it, sends at most up to the receiver's limit.
 * Receiver: hands bytes up at once and in order, exactly once; raises the limit when the application
 * says that it consumed. The window starts at RSB_CHAN_WINDOW and doubles, up to window_max, while the application
 * keeps up; so memory is bounded by the window and a stopped reader stops the far writer.
 */

#include "proto/frame.h"
#include "util/map.h"

#include <stdbool.h>

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
	/* Sender: there is room again after a short write. */
	void (*writable)(void *arg, uint64_t chan);
	/* The other end gave up; r is a negative errno. The channel is closed already. */
	void (*reset)(void *arg, uint64_t chan, int r);
};

/* Callbacks come from rsb_chans_input() alone and may call back into this module. */
rsb_nodiscard int rsb_chans_new(
	const struct rsb_chan_ops *ops, void *arg, struct rsb_chans **ret_chans);
void rsb_chans_free(struct rsb_chans *chans);
RSB_DEFINE_CLEANUP(struct rsb_chans *, rsb_chans_free)

/* -EMFILE over RSB_CHANS_MAX, -EEXIST, -ENOMEM. */
rsb_nodiscard int rsb_chan_open_sender(struct rsb_chans *chans, uint64_t chan, size_t buffer_max);
rsb_nodiscard int rsb_chan_open_receiver(struct rsb_chans *chans, uint64_t chan, size_t window_max);
/* Forgets it on our side without telling the peer. */
void rsb_chan_close(struct rsb_chans *chans, uint64_t chan);
/* Tells the peer why (negative errno), then forgets. */
void rsb_chan_reset(struct rsb_chans *chans, uint64_t chan, int r);

/* Bytes taken, less than given when the buffer is full; -EPIPE (finished, reset or unknown). */
rsb_nodiscard int rsb_chan_write(struct rsb_chans *chans, uint64_t chan, struct rsb_bytes data);
/* Room in the buffer of a sender; 0 for an unknown one. */
size_t rsb_chan_room(const struct rsb_chans *chans, uint64_t chan);
/* End of stream after what was written. */
rsb_nodiscard int rsb_chan_finish(struct rsb_chans *chans, uint64_t chan);
/* The receiver has everything, the end included. Unknown channels count as drained. */
bool rsb_chan_drained(const struct rsb_chans *chans, uint64_t chan);
/* Receiver: the application is done with size more bytes. */
void rsb_chan_consume(struct rsb_chans *chans, uint64_t chan, size_t size);
/* Total bytes written (sender) or received (receiver) so far; 0 for an unknown one. */
uint64_t rsb_chan_offset(const struct rsb_chans *chans, uint64_t chan);

/* ---- connections ---- */

/* A connection begins: senders wait for a CREDIT that says where to go on, receivers send theirs. */
void rsb_chans_attach(struct rsb_chans *chans);
void rsb_chans_detach(struct rsb_chans *chans);
/* STREAM, CREDIT and RESET. Frames of unknown channels are ignored, but a STREAM is answered by RESET. -EBADMSG: against the rules. */
rsb_nodiscard int rsb_chans_input(struct rsb_chans *chans, const struct rsb_frame *frame);
/*
 * The next frame: first CREDIT and RESET (urgent), then, unless urgent_only, STREAM of the channels in turn, while fewer
 * than in_flight_max bytes are on their way in all. As rsb_stream_output().
 */
rsb_nodiscard int rsb_chans_output(struct rsb_chans *chans, bool urgent_only, size_t in_flight_max,
	struct rsb_frame *ret_frame);

#endif
