/* SPDX-License-Identifier: MIT */
#ifndef RSB_PIPE_H
#define RSB_PIPE_H

/*
 * The three streams of each relayed command, between the client's struct rsb_chans and the link.
 * Nothing piles up here: what the link sends fits into the client's send buffer, because the
 * link gets credit only for what the client took; what the client sends waits here only up to
 * the credit that it was given.
 *
 * Main thread, but for rsb_pipe_take_*(), which queue for it.
 */

#include "fuse/guest.h"

struct rsb_pipe;  /* of one command */
struct rsb_pipes; /* of all */

enum rsb_pipe_flag {
	RSB_PIPE_STDIN = 1 << 0, /* which streams there are */
	RSB_PIPE_STDOUT = 1 << 1,
	RSB_PIPE_STDERR = 1 << 2,
};

rsb_nodiscard int rsb_pipes_new(
	struct rsb_loop *loop, struct rsb_link *link, struct rsb_pipes **ret_pipes);
void rsb_pipes_free(struct rsb_pipes *pipes);

/* Those of a command; NULL: of an archive on its way in. */
unsigned int rsb_pipe_streams(const struct rsb_spawn_req *spawn);
/* Opens the streams on both sides. */
rsb_nodiscard int rsb_pipe_new(struct rsb_pipes *pipes, struct rsb_guest *client, uint64_t near,
	uint64_t far, unsigned int flags, struct rsb_pipe **ret_pipe);
/* Closes them. NULL is fine. */
void rsb_pipe_free(struct rsb_pipe *pipe);
/* Nothing comes from the sandbox any more: the client hears of it behind what came. */
void rsb_pipe_give_up(struct rsb_pipe *pipe);
/* The client is gone: what comes is thrown away. */
void rsb_pipe_orphan(struct rsb_pipe *pipe);

/* From the client's streams (proto/chan.h). */
void rsb_pipe_stdin(struct rsb_pipe *pipe, struct rsb_bytes data, bool fin);
void rsb_pipe_near_reset(struct rsb_pipe *pipe, uint64_t chan, int r);
/* The client took more: the link may send more. */
void rsb_pipe_credit(struct rsb_pipe *pipe);

/* {any} From the link's streams. */
void rsb_pipe_take_data(struct rsb_pipes *pipes, uint64_t chan, struct rsb_bytes data, bool fin);
void rsb_pipe_take_writable(struct rsb_pipes *pipes, uint64_t chan);
void rsb_pipe_take_reset(struct rsb_pipes *pipes, uint64_t chan, int r);

#endif
