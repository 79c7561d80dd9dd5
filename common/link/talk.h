/* SPDX-License-Identifier: MIT */
#ifndef RSB_TALK_H
#define RSB_TALK_H

/*
 * What the io thread says and hears over the connection of the moment: hello and welcome, the
 * session's frames, replies to calls; and what becomes of session and calls when it breaks.
 * All functions belong to the io thread and run callbacks. Private to link/.
 */

#include "link/core.h"

extern const struct rsb_wire_ops rsb_talk_wire_ops; /* arg: the link */

rsb_nodiscard int rsb_talk_new_session(struct rsb_link *link, struct rsb_session **ret_session);
/* Another session from now on; everything of the old one ends with -ENOTCONN. */
void rsb_talk_lose_session(struct rsb_link *link);
/* The connection is gone. */
void rsb_talk_lost(struct rsb_link *link, int r);
void rsb_talk_end_calls(struct rsb_link *link, int r);
/*
 * Of a session that ends: its calls and streams, out of the shared tables, under the lock; then
 * without it calls and streams are told.
 */
void rsb_talk_take_all(struct rsb_link *link, struct rsb_list *calls, struct rsb_map *ret_lanes);
void rsb_talk_end_list(struct rsb_list *calls, int r);
void rsb_talk_reset_chans(struct rsb_link *link, struct rsb_map *lanes, int r);
/* What a connection that works is: LIVE, or RESYNC while the session goes on anew. */
enum rsb_link_state rsb_talk_up(struct rsb_link *link);
void rsb_talk_set_state(
	struct rsb_link *link, enum rsb_link_state state, int reason, bool new_epoch);
void rsb_talk_set_why(struct rsb_link *link, const char *text);
/* Adds the connection's counters to the link's. */
void rsb_talk_count(struct rsb_link *link);

#endif
