/* SPDX-License-Identifier: MIT */
#ifndef RSB_CLOCK_H
#define RSB_CLOCK_H

/*
 * Monotonic time in nanoseconds, injectable. State machines take now_ns as an argument; loops take
 * a struct rsb_clock. 0 is never a valid time: deadlines use it for "none".
 */

#include "util/macro.h"

struct rsb_clock {
	uint64_t (*now_ns)(void *arg);
	void *arg;
};

/* CLOCK_MONOTONIC. Static storage. */
const struct rsb_clock *rsb_clock_monotonic(void);

static inline uint64_t
rsb_clock_now(const struct rsb_clock *clock)
{
	return clock->now_ns(clock->arg);
}

/* now of CLOCK_MONOTONIC / CLOCK_REALTIME. */
uint64_t rsb_now_ns(void);
uint64_t rsb_wall_ns(void);
/* now of CLOCK_BOOTTIME, which goes on while the machine is suspended, and which nobody sets. */
uint64_t rsb_boot_ns(void);

/* "2026-08-21T10:00:00.123456Z" of wall_ns; out has 28 bytes. */
#define RSB_RFC3339_SIZE 28
void rsb_clock_rfc3339(uint64_t wall_ns, char out[static RSB_RFC3339_SIZE]);
/* RFC 3339 with optional fraction, Z or offset, from 1970 to 2554. -EINVAL. */
rsb_nodiscard int rsb_clock_parse_rfc3339(const char *s, uint64_t *ret_wall_ns);

#endif
