/* SPDX-License-Identifier: MIT */
#ifndef RSB_RECORD_H
#define RSB_RECORD_H

/*
 * Listens in on links and counts what the host asks for: takes the bytes of the client side of each
 * connection, skips the HTTP upgrade, and walks WebSocket, frames and messages with the same
 * modules as the sidecar.
 */

#include "util/buf.h"

struct rsb_record;

rsb_nodiscard int rsb_record_new(struct rsb_record **ret_record);
void rsb_record_free(struct rsb_record *record);
/*
 * Bytes from the client of connection id, in order; size 0: it ended. What is no link of ours is
 * ignored.
 */
void rsb_record_input(struct rsb_record *record, uint64_t id, struct rsb_bytes bytes);
/*
 * Appends "mutations=N requests=N lookup=N mkdir=N ..." (ops with a count only), then starts again
 * from zero.
 */
rsb_nodiscard int rsb_record_report(struct rsb_record *record, struct rsb_buf *out);

#endif
