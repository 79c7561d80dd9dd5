/* SPDX-License-Identifier: MIT */
#ifndef RSB_HOSTILE_LOOKUP_H
#define RSB_HOSTILE_LOOKUP_H

/* What no sidecar says: beside the answer to a look-up, or instead of it. */

#include <stdbool.h>

#include "far-end.h"

/* By name, see the table at the end of the .c; true: it is answered. */
bool hostile_lookup(struct far_end *far, const struct rsb_call_head *head, const char *name);

struct rsb_attr hostile_attr(uint64_t id, bool is_dir);
/* The same frame very often. */
void hostile_flood(
	struct far_end *far, uint8_t type, uint64_t a, uint64_t b, struct rsb_bytes payload);
/* A successful reply with this for its body, and pad zeros behind. */
void hostile_reply(
	struct far_end *far, const struct rsb_call_head *head, struct rsb_bytes body, size_t pad);

#define HOSTILE_RAW(text) ((struct rsb_bytes){ (const uint8_t *)(text), sizeof(text) - 1 })

#endif
