/* SPDX-License-Identifier: MIT */
#ifndef RSB_STATE_JSON_H
#define RSB_STATE_JSON_H

/*
 * struct rsb_state as the text of state.json and back. Paths are bytes and JSON is UTF-8, so
 * in them everything but visible ASCII, and '%', is written as %XX. Pure.
 */

#include "keeper/state.h"

#define RSB_STATE_VERSION 1

rsb_nodiscard int rsb_state_write(const struct rsb_state *state, struct rsb_buf *out);
/* -EBADMSG: damaged, or of a later version; with a sentence. */
rsb_nodiscard int rsb_state_read(
	struct rsb_bytes text, struct rsb_state *ret_state, struct rsb_diag *diag);

#endif
