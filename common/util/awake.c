/* SPDX-License-Identifier: MIT */
#include "util/awake.h"

uint64_t
rsb_awake_ns(struct rsb_awake *awake, uint64_t now_ns)
{
	uint64_t gap_ns = awake->seen_ns && now_ns > awake->seen_ns ? now_ns - awake->seen_ns : 0;

	/* late by as much again is still a slow machine */
	if (gap_ns > 2 * awake->step_ns)
		awake->slept_ns += gap_ns - awake->step_ns;
	awake->seen_ns = rsb_max(now_ns, awake->seen_ns);
	return now_ns - awake->slept_ns;
}
