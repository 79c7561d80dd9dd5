/* SPDX-License-Identifier: MIT */
#ifndef RSB_EPOCH_H
#define RSB_EPOCH_H

/*
 * The name of one life of this memory: kernel boot id, a nonce of this start, a generation. As text
 * on the wire; as a number, which leaves out the boot id, in the journal.
 */

#include <stdbool.h>

#include "util/buf.h"

#define RSB_EPOCH_SIZE 65
#define RSB_BOOT_ID_SIZE 37

struct rsb_epoch {
	char boot_id[RSB_BOOT_ID_SIZE]; /* empty: unknown */
	char text[RSB_EPOCH_SIZE];
	uint64_t number;
};

/* The errno of rsb_random(). */
rsb_nodiscard int rsb_epoch_init(struct rsb_epoch *epoch);
/* Another one. */
void rsb_epoch_next(struct rsb_epoch *epoch);
/* Whether text is the epoch of this boot that has the number. */
bool rsb_epoch_is(const struct rsb_epoch *epoch, uint64_t number, struct rsb_bytes text);

#endif
