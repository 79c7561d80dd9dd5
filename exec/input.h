/* SPDX-License-Identifier: MIT */
#ifndef RSB_INPUT_H
#define RSB_INPUT_H

/*
 * Our standard input, read only as fast as the command takes it. Works on anything that read(2)
 * does: what epoll(7) refuses (files, /dev/null) is always ready. The descriptor's flags are not
 * touched. A terminal is not read while we are in its background.
 */

#include "util/buf.h"
#include "util/loop.h"

struct rsb_input;

struct rsb_input_ops {
	/* How many bytes can be taken now; 0: rsb_input_resume() tells when to ask again. */
	size_t (*room)(void *arg);
	/* At most room bytes; size 0: the end (r 0) or the error of read(2). The last call. */
	void (*data)(void *arg, struct rsb_bytes data, int r);
};

rsb_nodiscard int rsb_input_new(struct rsb_loop *loop, int fd, const struct rsb_input_ops *ops,
	void *arg, struct rsb_input **ret_input);
void rsb_input_free(struct rsb_input *input); /* NULL is fine; also from data() */
void rsb_input_resume(struct rsb_input *input);

#endif
