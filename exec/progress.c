/* SPDX-License-Identifier: MIT */
#include "exec/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"

#define INTERVAL_NS (100 * RSB_NSEC_PER_MSEC)
#define BAR_WIDTH 20

void
rsb_progress_init(struct rsb_progress *progress, const char *what, bool quiet)
{
	*progress = (struct rsb_progress){ .what = what, .on = !quiet && isatty(STDERR_FILENO) };
}

void
rsb_progress_bytes(uint64_t bytes, char out[static RSB_PROGRESS_SIZE])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < RSB_ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	(void)snprintf(out, RSB_PROGRESS_SIZE, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void
rsb_progress_sync(void *arg, const struct rsb_sync_stats *stats)
{
	struct rsb_progress *progress = arg;
	char bytes[RSB_PROGRESS_SIZE];
	char bar[BAR_WIDTH + 1];
	uint64_t now_ns = rsb_now_ns();

	if (!progress->on || now_ns - progress->last_ns < INTERVAL_NS)
		return;
	progress->last_ns = now_ns;
	progress->shown = true;
	rsb_progress_bytes(stats->bytes, bytes);
	/*
	 * The size of the tree is not known before it was walked: the bar only says that it moves.
	 */
	for (int i = 0; i < BAR_WIDTH; i++)
		bar[i] = (now_ns / INTERVAL_NS + BAR_WIDTH - (uint64_t)i) % BAR_WIDTH < 4 ? '='
											  : ' ';
	bar[BAR_WIDTH] = '\0';
	(void)fprintf(stderr, "\r%s [%s] %llu files, %s\033[K", progress->what, bar,
		(unsigned long long)stats->files, bytes);
}

void
rsb_progress_done(struct rsb_progress *progress)
{
	if (progress->shown)
		(void)fputs("\r\033[K", stderr);
	progress->shown = false;
}
