/* SPDX-License-Identifier: MIT */
#ifndef RSB_AHEAD_H
#define RSB_AHEAD_H

/*
 * Reads ahead of a program that reads an open file in order. The kernel asks for 128 KiB at a
 * time, which over a long path is 128 KiB for each round trip; so pieces beyond what was asked
 * for are fetched as well, the further the longer the program keeps its order, and given out when
 * the kernel comes for them.
 *
 * Only while the cache is on: what was fetched early must still be true. A change of the file, or
 * a new generation of the cache, ends it. All under the lock of fuse/fs.h.
 */

#include "fuse/fop.h"

#define RSB_AHEAD_WINDOW_MIN ((uint64_t)1 << 20)
#define RSB_AHEAD_WINDOW_MAX ((uint64_t)8 << 20) /* of one file */
#define RSB_AHEAD_MAX ((size_t)64 << 20)         /* of all */

struct rsb_ahead;

/* Takes a read (offset, size, handle, inode are set): true; it is answered now or later. */
bool rsb_ahead_read(struct rsb_fop *fop);
/* With its handle. No piece is on its way any more. NULL is fine. */
void rsb_ahead_free(struct rsb_ahead *ahead);

#endif
