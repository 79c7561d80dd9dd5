/* SPDX-License-Identifier: MIT */
#ifndef RSB_SIZES_H
#define RSB_SIZES_H

/*
 * How long the files are that somebody has open here. The kernel asks for that by itself before a
 * read(2) beyond the end that it knows, but neither before it maps a file nor before
 * copy_file_range(2); so after a command it has to be told.
 *
 * All are asked about at once, at most RSB_SIZES_MAX at a time. What was changed here meanwhile is
 * left alone: the kernel knows of that. That a file is shorter it finds out when it reads.
 */

#include "fuse/fs.h"
#include "util/loop.h"

#define RSB_SIZES_MAX 1024u

struct rsb_sizes;

/* All answers are there, and the notifier has its orders. */
typedef void (*rsb_sizes_fn)(void *arg);

/* Loop's thread; fs->notify is there. done() comes there once, later. */
rsb_nodiscard int rsb_sizes_ask(struct rsb_fs *fs, struct rsb_loop *loop, rsb_sizes_fn done,
	void *arg, struct rsb_sizes **ret_sizes);
/* Before done(): it does not come any more. NULL is fine. */
void rsb_sizes_forget(struct rsb_sizes *sizes);

#endif
