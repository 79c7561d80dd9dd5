/* SPDX-License-Identifier: MIT */
#include "util/backoff.h"

uint64_t
rsb_backoff_ns(unsigned int attempt, uint64_t base_ns, uint64_t max_ns, uint32_t random)
{
	uint64_t ns = rsb_min(base_ns, max_ns);
	uint64_t half;

	for (; attempt > 0 && ns > 0 && ns < max_ns; attempt--)
		ns = ns > max_ns / 2 ? max_ns : ns * 2;

	/* half * random / 2^32 in two parts, as the product may need 96 bits. */
	half = ns / 2;
	return ns - half + (half >> 32) * random + (((half & UINT32_MAX) * random) >> 32);
}
