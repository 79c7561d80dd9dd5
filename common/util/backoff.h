/* SPDX-License-Identifier: MIT */
#ifndef RSB_BACKOFF_H
#define RSB_BACKOFF_H

/* Pure: delay before the given attempt (0 = first retry). */

#include "util/macro.h"

/* base_ns * 2^attempt, capped at max_ns, times a factor in [0.5, 1) from the 32 random bits. */
uint64_t rsb_backoff_ns(unsigned int attempt, uint64_t base_ns, uint64_t max_ns, uint32_t random);

#endif
