/* SPDX-License-Identifier: MIT */
#include "util/localtime.h"

#include <stdbool.h>
#include <time.h>

#include "util/clock.h"

static struct tm
split(uint64_t wall_ns)
{
	const time_t sec = (time_t)(wall_ns / RSB_NSEC_PER_SEC);
	struct tm tm = { 0 };

	(void)localtime_r(&sec, &tm); /* fails for years that no uint64_t of ns has */
	return tm;
}

void
rsb_localtime(uint64_t wall_ns, uint64_t now_ns, char out[static RSB_LOCALTIME_SIZE])
{
	const struct tm then = split(wall_ns);
	const struct tm now = split(now_ns);
	const bool today = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;

	if (!strftime(out, RSB_LOCALTIME_SIZE, today ? "%H:%M" : "%Y-%m-%d %H:%M", &then))
		out[0] = '\0';
}

void
rsb_localtime_full(uint64_t wall_ns, char out[static RSB_LOCALTIME_SIZE])
{
	const struct tm then = split(wall_ns);

	if (!strftime(out, RSB_LOCALTIME_SIZE, "%Y-%m-%d %H:%M:%S", &then))
		out[0] = '\0';
}
