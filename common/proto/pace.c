/* SPDX-License-Identifier: MIT */
#include "proto/pace.h"

#define RTT_PERIOD_NS (30 * RSB_NSEC_PER_SEC)
#define RATE_PERIOD_NS (2 * RSB_NSEC_PER_SEC)
/* A shorter sample would take one burst of acknowledgements for the rate. */
#define SAMPLE_MIN_NS (5 * RSB_NSEC_PER_MSEC)

void
rsb_pace_init(struct rsb_pace *pace)
{
	*pace = (struct rsb_pace){ 0 };
}

void
rsb_pace_pause(struct rsb_pace *pace)
{
	pace->sample_ns = 0;
}

bool
rsb_pace_is_stale(const struct rsb_pace *pace, uint64_t now_ns)
{
	return pace->rtt_ns == 0 || now_ns - pace->rtt_at_ns >= RTT_PERIOD_NS;
}

void
rsb_pace_round_trip(struct rsb_pace *pace, uint64_t now_ns, uint64_t rtt_ns, bool calm)
{
	if (pace->rtt_ns != 0 && rtt_ns > pace->rtt_ns &&
		!(calm && rsb_pace_is_stale(pace, now_ns)))
		return;
	pace->rtt_ns = rsb_max(rtt_ns, UINT64_C(1));
	pace->rtt_at_ns = now_ns;
}

static void
take_sample(struct rsb_pace *pace, uint64_t now_ns, uint64_t size, uint64_t elapsed_ns)
{
	/* In 1 KiB and µs, so that no product overflows for years. */
	uint64_t rate = (size >> 10) * 1000000 / (elapsed_ns / 1000) << 10;

	if (pace->limited && now_ns - pace->rate_since_ns >= RATE_PERIOD_NS) {
		pace->rate[1] = pace->rate[0];
		pace->rate[0] = 0;
		pace->rate_since_ns = now_ns;
		pace->limited = false;
	}
	pace->rate[0] = rsb_max(pace->rate[0], rate);
}

void
rsb_pace_progress(struct rsb_pace *pace, uint64_t now_ns, uint64_t delivered, bool idle)
{
	uint64_t need_ns = rsb_max(pace->rtt_ns, SAMPLE_MIN_NS);

	if (pace->sample_ns == 0) {
		pace->sample_ns = now_ns;
		pace->sample_delivered = delivered;
	} else if (now_ns - pace->sample_ns >= need_ns) {
		take_sample(
			pace, now_ns, delivered - pace->sample_delivered, now_ns - pace->sample_ns);
		pace->sample_ns = now_ns;
		pace->sample_delivered = delivered;
	}
	/* What comes after a pause is measured from its own first acknowledgement on. */
	if (idle)
		rsb_pace_pause(pace);
}

void
rsb_pace_limited(struct rsb_pace *pace)
{
	pace->limited = true;
}

size_t
rsb_pace_in_flight_max(const struct rsb_pace *pace, uint64_t now_ns)
{
	uint64_t rate = rsb_max(pace->rate[0], pace->rate[1]);
	uint64_t rtt_us = pace->rtt_ns / 1000, size;

	if (rsb_pace_is_stale(pace, now_ns))
		return RSB_PACE_MIN;
	/* A rate beyond this over a round trip of an hour would overflow; both are absurd. */
	rate = rsb_min(rate, UINT64_C(1) << 40);
	rtt_us = rsb_min(rtt_us, UINT64_C(1) << 22);
	size = rate * rtt_us / 1000000;
	size += size / 2;
	size = rsb_max(size, (uint64_t)RSB_PACE_MIN);
	return (size_t)rsb_min(size, (uint64_t)RSB_PACE_MAX);
}
