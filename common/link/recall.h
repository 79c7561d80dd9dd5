/* SPDX-License-Identifier: MIT */
#ifndef RSB_RECALL_H
#define RSB_RECALL_H

/*
 * Takes calls back. One of which nothing was sent yet leaves the queue and is never executed; a
 * mutation leaves "skip" in its place, for later requests name mutations by their count. One that
 * was sent, if only in part, cannot be taken back: it is cancelled over there, or its caller is
 * told that its outcome is unknown and its reply, when it comes, is nobody's. Io thread; private
 * to link/.
 */

#include "link/core.h"

/* {any} The call is to be cancelled or withdrawn; r: how it ends when nothing of it was sent. */
void rsb_recall_wish(struct rsb_link *link, uint64_t id, enum rsb_pending_wish wish, int r);
/* Does what the calls' wishes say; runs callbacks. */
void rsb_recall_run(struct rsb_link *link);
/* All calls end with r, or with -ENOTCONN when they were sent. */
void rsb_recall_all(struct rsb_link *link, int r);
/*
 * {any} Whether op only gives something back, which the far side would else keep for nobody, or
 * only waits: it is never withdrawn.
 */
bool rsb_recall_spares(uint32_t op);

#endif
