/* SPDX-License-Identifier: MIT */
#ifndef RSB_OUTPUT_H
#define RSB_OUTPUT_H

/*
 * What a command writes, passed on to one of our descriptors: unbuffered, never blocking the loop
 * (so that signals still reach the command while nobody reads), never changing the flags of a
 * descriptor that others share. Bytes that the descriptor does not take wait here; they are
 * consumed from the credit only once written, so a reader that stops stops the far writer. EPIPE
 * ends this output: the far side gets it as its own EPIPE.
 */

#include <stdbool.h>

#include "util/buf.h"
#include "util/loop.h"

struct rsb_output;

/* written: size more bytes are out; r < 0: the descriptor takes no more, ever. */
typedef void (*rsb_output_fn)(void *arg, size_t size, int r);

/* fd is borrowed. max: bytes that may wait, the stream's window. */
rsb_nodiscard int rsb_output_new(struct rsb_loop *loop, int fd, size_t max, rsb_output_fn fn,
	void *arg, struct rsb_output **ret_output);
void rsb_output_free(struct rsb_output *output); /* NULL is fine */
/* -EPIPE and others once it failed, -EMSGSIZE over max. */
rsb_nodiscard int rsb_output_write(struct rsb_output *output, struct rsb_bytes data);
/* Nothing waits. */
bool rsb_output_empty(const struct rsb_output *output);

#endif
