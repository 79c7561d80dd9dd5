/* SPDX-License-Identifier: MIT */
#ifndef RSB_PROC_STREAM_H
#define RSB_PROC_STREAM_H

/*
 * The two ways between a channel and a pipe. Memory is bounded by credit: what comes in is consumed
 * only when the pipe took it, and a pipe is read only while the channel has room. Both exist before
 * their pipe does, so that bytes which the host sends right behind its request are not lost. On the
 * io thread.
 */

#include <stdbool.h>

#include "sidecar/sess.h"

#define RSB_STREAM_IN_WINDOW_MAX ((size_t)1 << 20)
#define RSB_STREAM_OUT_BUFFER_MAX RSB_CHAN_WINDOW_MAX

/* From a channel into a pipe. */
struct rsb_inflow {
	struct rsb_chan_user user;
	struct rsb_sess *sess; /* NULL: never opened */
	uint64_t chan;
	int fd; /* owned; -1: not there yet, or over */
	struct rsb_source *source;
	struct rsb_buf buf; /* received, not yet written */
	bool started;       /* it had its pipe */
	bool fin;           /* nothing more comes */
	bool cut;           /* the host gave it up before its end */
};

/* As rsb_chan_open_receiver(). */
rsb_nodiscard int rsb_inflow_open(
	struct rsb_inflow *in, struct rsb_sess *sess, uint64_t chan, size_t window_max);
/* Takes fd (also on failure), a pipe's end that does not block, and writes what came before. */
rsb_nodiscard int rsb_inflow_start(struct rsb_inflow *in, int fd);
/* Closes channel and pipe; zeroed memory is fine, and so is a second time. */
void rsb_inflow_close(struct rsb_inflow *in);

/* From a pipe into a channel. */
struct rsb_outflow {
	struct rsb_chan_user user;
	struct rsb_sess *sess; /* NULL: never opened */
	uint64_t chan;
	int fd;                    /* owned; -1: not there yet, or over */
	struct rsb_source *source; /* NULL: no room in the channel */
	uint64_t size;             /* bytes read so far, of the whole stream */
	uint64_t due; /* of them, bytes that were in the pipe when rsb_outflow_mark() looked */
	bool started;
	bool mute;    /* what comes is thrown away */
	bool cut;     /* the host gave it up */
	bool drained; /* the host has all of it */
	/* It was read from, ended, or drained. Not from within a call. */
	void (*moved)(void *arg);
	void *arg;
};

/* As rsb_chan_open_sender(). */
rsb_nodiscard int rsb_outflow_open(struct rsb_outflow *out, struct rsb_sess *sess, uint64_t chan,
	void (*moved)(void *arg), void *arg);
/* Takes fd, also on failure. */
rsb_nodiscard int rsb_outflow_start(struct rsb_outflow *out, int fd);
/* Remembers how far what is in the pipe now reaches. */
void rsb_outflow_mark(struct rsb_outflow *out);
/* All that was there at the mark is in the channel. */
bool rsb_outflow_reached(const struct rsb_outflow *out);
/* No writer is left, or nobody reads. Also true for one that was never opened. */
bool rsb_outflow_ended(const struct rsb_outflow *out);
/* Closes the channel and goes on reading, so that who still writes neither blocks nor dies. */
void rsb_outflow_mute(struct rsb_outflow *out);
void rsb_outflow_close(struct rsb_outflow *out);

#endif
