/* SPDX-License-Identifier: MIT */
#include "exec/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"

#define INTERVAL_NS (100 * RSB_NSEC_PER_MSEC)
#define BAR_WIDTH 20

void
rsb_progress_begin(struct rsb_progress *progress, const struct rsb_verb *verb,
	const struct rsb_verb_common *common, const char *what)
{
	*progress = (struct rsb_progress){
		.verb = verb,
		.what = what,
		.begun_ns = rsb_now_ns(),
		.on = !common->quiet && isatty(STDERR_FILENO),
		.verbose = common->verbose,
	};
	if (progress->verbose)
		(void)fprintf(stderr, "rsb %s: %s\n", verb->name, what);
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

	progress->stats = *stats;
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
	(void)fprintf(stderr, "\r%s [%s] %llu file%s, %s\033[K", progress->what, bar,
		(unsigned long long)stats->files, stats->files == 1 ? "" : "s", bytes);
}

void
rsb_progress_clear(struct rsb_progress *progress)
{
	if (progress->shown)
		(void)fputs("\r\033[K", stderr);
	progress->shown = false;
}

void
rsb_progress_end(struct rsb_progress *progress, int r)
{
	const unsigned long long files = progress->stats.files;
	const uint64_t took_ms = (rsb_now_ns() - progress->begun_ns) / RSB_NSEC_PER_MSEC;
	char bytes[RSB_PROGRESS_SIZE];

	rsb_progress_clear(progress);
	if (!progress->verbose || r < 0)
		return;
	(void)fprintf(stderr, "rsb %s: %s: done in %llu.%llu s", progress->verb->name,
		progress->what, (unsigned long long)(took_ms / 1000),
		(unsigned long long)(took_ms % 1000 / 100));
	rsb_progress_bytes(progress->stats.bytes, bytes);
	if (files)
		(void)fprintf(stderr, ", %llu file%s, %s", files, files == 1 ? "" : "s", bytes);
	(void)fputc('\n', stderr);
}
