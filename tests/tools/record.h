/* SPDX-License-Identifier: MIT */
#ifndef RSB_RECORD_H
#define RSB_RECORD_H

/*
 * Listens in on links and counts what the host asks for: takes the bytes of the client side of each
 * connection, skips the HTTP upgrade, and walks WebSocket, frames and messages with the same
 * modules as the sidecar.
 */

#include <stdbool.h>

#include "util/buf.h"

struct rsb_record;

rsb_nodiscard int rsb_record_new(struct rsb_record **ret_record);
void rsb_record_free(struct rsb_record *record);
/*
 * Bytes from the client of connection id, in order; size 0: it ended. What is no link of ours is
 * ignored. Returns how many of them are before a cut; all: there is none.
 */
size_t rsb_record_input(struct rsb_record *record, uint64_t id, struct rsb_bytes bytes);
/* Bytes for the client came. false: its link is to be cut before them. */
bool rsb_record_output(struct rsb_record *record, uint64_t id);
/*
 * One cut, at the n-th request from now on, 1 the next: before it, or, answered, after it and
 * before what comes next from the sidecar. 0: none.
 */
void rsb_record_cut(struct rsb_record *record, uint64_t n, bool answered);
/* Whether that cut is still to come. */
bool rsb_record_cuts(const struct rsb_record *record);
/*
 * Appends "mutations=N requests=N lookup=N mkdir=N ..." (ops with a count only), then starts again
 * from zero.
 */
rsb_nodiscard int rsb_record_report(struct rsb_record *record, struct rsb_buf *out);

#endif
