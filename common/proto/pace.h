/* SPDX-License-Identifier: MIT */
#ifndef RSB_PACE_H
#define RSB_PACE_H

/*
 * How many bytes of streams may be on their way: the bandwidth that was measured times the round
 * trip, and half as much again so that a faster path is found out. More would only queue at a
 * proxy, in front of frames that are urgent. Pure: counts and now_ns in.
 *
 * Bandwidth is the highest rate of the last one to two periods; it is not forgotten while the
 * sender has too little to send, since then it says nothing about the path. The round trip is the
 * lowest known. A queue of our own making shows in both and must not raise the product; so once the
 * round trip is old, the maximum falls to RSB_PACE_MIN until it was measured again in that calm.
 */

#include <stdbool.h>

#include "util/macro.h"

#define RSB_PACE_MIN ((size_t)256 << 10)
#define RSB_PACE_MAX ((size_t)32 << 20)

struct rsb_pace {
	uint64_t rtt_ns; /* 0: unknown */
	uint64_t rtt_at_ns;
	uint64_t rate[2]; /* bytes a second, highest of this period and of the one before */
	uint64_t rate_since_ns;
	uint64_t sample_ns; /* begin of the running sample; 0: none */
	uint64_t sample_delivered;
	bool limited; /* the maximum held something back in this period */
};

void rsb_pace_init(struct rsb_pace *pace);
/* The running sample is dropped: a new connection. */
void rsb_pace_pause(struct rsb_pace *pace);
/* calm: no more than RSB_PACE_MIN was on its way when it began. */
void rsb_pace_round_trip(struct rsb_pace *pace, uint64_t now_ns, uint64_t rtt_ns, bool calm);
/* The round trip should be measured again as soon as it is calm. */
bool rsb_pace_is_stale(const struct rsb_pace *pace, uint64_t now_ns);
/* delivered: total of a counter that only rises. idle: nothing is on its way any more. */
void rsb_pace_progress(struct rsb_pace *pace, uint64_t now_ns, uint64_t delivered, bool idle);
/* The maximum held something back. */
void rsb_pace_limited(struct rsb_pace *pace);
size_t rsb_pace_in_flight_max(const struct rsb_pace *pace, uint64_t now_ns);

#endif
