/* SPDX-License-Identifier: MIT */
#ifndef RSB_REVIVAL_H
#define RSB_REVIVAL_H

/*
 * A session that another process of the sidecar had (PROTOCOL.md 3.9). Mutations that this one
 * began are not executed when they are called again: the journal has the answer, and what they made
 * is looked for under the names in the request. What is not there any more waits, known by inode
 * and birth time alone, for a mutation that moved it.
 */

#include "sidecar/request.h"

struct rsb_revival;

/* begun: mutations of before; first_call: of those that are not made again. */
rsb_nodiscard int rsb_revival_new(
	uint64_t begun, uint64_t first_call, struct rsb_revival **ret_revival);
void rsb_revival_free(struct rsb_revival *revival); /* NULL is fine */

/*
 * {any} Whether the call is one that the process before may have begun, and is not to be executed.
 * revival may be NULL.
 */
bool rsb_revival_has(const struct rsb_revival *revival, const struct rsb_call_head *head);

/* ---- the session's mutator ---- */

/* The reply to a call of before, in rq->reply. -ENOTCONN: nobody knows it. */
rsb_nodiscard int rsb_revival_recall(struct rsb_request *rq);
/* Whether the file was released by a mutation of before. revival may be NULL. */
bool rsb_revival_released(const struct rsb_revival *revival, uint64_t fh);

#endif
