/* SPDX-License-Identifier: MIT */
#ifndef RSB_PAUSENOTE_H
#define RSB_PAUSENOTE_H

/*
 * A pause that nobody here was there to see, as that of a sandbox whose time was over: the event
 * log has it from when it is found. end_ns: when its time was over, wall clock; 0: not known.
 */

#include "exec/where.h"

/* Under the state's lock: else it may be one that somebody is about to write down. */
void rsb_pausenote(struct rsb_state_dir *dir, uint64_t end_ns);
/* For who has no lock: it was found paused. Nothing is written while somebody changes it. */
void rsb_pausenote_found(const struct rsb_where *where, uint64_t end_ns);

#endif
