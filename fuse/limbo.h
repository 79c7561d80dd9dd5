/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_LIMBO_H
#define RSB_FUSE_LIMBO_H

/*
 * The calls that the sidecar had not answered when its process ended: here until they are made
 * again, under their numbers, for the next one. Meanwhile none is in the link, whose owner decides
 * when (fuse/revive.h), and what is called anew is parked behind them.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/send.h"
#include "proto/codec.h"

struct rsb_sending;

/* The link gave call back. */
void rsb_limbo_put(struct rsb_sending *call);
/* All are here that were under way: in their order from now on. */
rsb_nodiscard int rsb_limbo_sort(struct rsb_send *send);
/*
 * Makes mutations again, those with a FIFO number up to fifo; or (others) all that is left. 1: that
 * was all; 0: there is no room now.
 */
int rsb_limbo_mutations(struct rsb_send *send, uint64_t fifo);
int rsb_limbo_others(struct rsb_send *send);
/* As ops->early of link/link.h. */
uint32_t rsb_limbo_answer(struct rsb_send *send, const struct rsb_call_head *head);
/* It is not made again; r: what its caller is told if it changes nothing, else it is unknown. */
void rsb_limbo_give_up(struct rsb_sending *call, int r);
void rsb_limbo_end(struct rsb_send *send, int r);
/*
 * What is not in the ledger and was not sent: commands, which have lost their streams, and what the
 * sidecar of before was to forget. They end with ERESTART.
 */
void rsb_limbo_end_unentered(struct rsb_send *send);

#endif
