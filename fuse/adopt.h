/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_ADOPT_H
#define RSB_FUSE_ADOPT_H

/*
 * Tells a sidecar whose process is another one what it has given out: every node, by a name that it
 * had, a directory before what is in it. Those that are not found there are tried under their other
 * names, as far as these are known. Piece by piece, a few of them under way at a time.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/fs.h"

struct rsb_adopt;

/* Before names are dropped. */
rsb_nodiscard int rsb_adopt_new(struct rsb_fs *fs, struct rsb_adopt **ret_adopt);
/* What is under way counts for nothing any more. NULL is fine. */
void rsb_adopt_free(struct rsb_adopt *adopt);
RSB_DEFINE_CLEANUP(struct rsb_adopt *, rsb_adopt_free)
/* Calls rsb_revive_step() with every answer. 1: all is said; 0: there is more to come. */
int rsb_adopt_step(struct rsb_adopt *adopt);
/* Nodes that are known there. */
size_t rsb_adopt_count(const struct rsb_adopt *adopt);

#endif
