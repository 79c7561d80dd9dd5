/* SPDX-License-Identifier: MIT */
#ifndef RSB_AWAKE_H
#define RSB_AWAKE_H

/*
 * A clock that stands still while nobody here could act: a virtual machine that was suspended or
 * moved, a process that was stopped. CLOCK_MONOTONIC leaves out the suspend of the machine itself,
 * but not these; a patience that ran out meanwhile would say nothing about the peer. It is told by
 * the gap between two readings, so it must be read at least once in a step while awake.
 */

#include "util/macro.h"

struct rsb_awake {
	uint64_t step_ns;
	uint64_t seen_ns; /* 0: not read yet */
	uint64_t slept_ns;
};

/* now_ns without the time slept. */
uint64_t rsb_awake_ns(struct rsb_awake *awake, uint64_t now_ns);

#endif
