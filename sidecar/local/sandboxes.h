/* SPDX-License-Identifier: MIT */
#ifndef RSB_SANDBOXES_H
#define RSB_SANDBOXES_H

/* The sandboxes that requests can reach, newest last. Any thread. */

#include "sidecar/local/sandbox.h"

#define RSB_SANDBOXES_MAX 100U /* upper limit of --max, and one page of the list */

struct rsb_sandboxes;

rsb_nodiscard int rsb_sandboxes_new(size_t max, struct rsb_sandboxes **ret_sandboxes);
/* All sandboxes are gone. NULL is fine. */
void rsb_sandboxes_free(struct rsb_sandboxes *sandboxes);

/*
 * A place for a sandbox that is going to be made, held until rsb_sandboxes_release(), and a number
 * that no other living sandbox has. -EAGAIN when full, -ESHUTDOWN after close.
 */
rsb_nodiscard int rsb_sandboxes_reserve(struct rsb_sandboxes *sandboxes, uint32_t *ret_slot);
/* The sandbox could not be made, or nothing of it is left. */
void rsb_sandboxes_release(struct rsb_sandboxes *sandboxes);
/* Takes a reference. -ESHUTDOWN after close. */
rsb_nodiscard int rsb_sandboxes_add(struct rsb_sandboxes *sandboxes, struct rsb_sandbox *sandbox);

/* A reference, or NULL. take removes it, so that nobody else finds it. */
struct rsb_sandbox *rsb_sandboxes_find(struct rsb_sandboxes *sandboxes, const char *id);
struct rsb_sandbox *rsb_sandboxes_take(struct rsb_sandboxes *sandboxes, const char *id);
/* A sandbox ends by itself. Harmless when it is not in. */
void rsb_sandboxes_remove(struct rsb_sandboxes *sandboxes, struct rsb_sandbox *sandbox);

/* References to all into list, oldest first; their number. */
size_t rsb_sandboxes_list(
	struct rsb_sandboxes *sandboxes, struct rsb_sandbox *list[static RSB_SANDBOXES_MAX]);
/* Places held. */
size_t rsb_sandboxes_len(struct rsb_sandboxes *sandboxes);
size_t rsb_sandboxes_max(const struct rsb_sandboxes *sandboxes);

/* No new ones; kills all, and waits until no place is held. */
void rsb_sandboxes_close(struct rsb_sandboxes *sandboxes);

#endif
