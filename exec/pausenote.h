/* SPDX-License-Identifier: MIT */
#ifndef RSB_PAUSENOTE_H
#define RSB_PAUSENOTE_H

/*
 * A pause that nobody here was there to see, as that of a sandbox whose time was over: the event
 * log has it from when it is found. end_ns: when its time was over, wall clock; 0: not known.
 */

#include "keeper/state.h"

void rsb_pausenote(struct rsb_state_dir *dir, uint64_t end_ns);

#endif
