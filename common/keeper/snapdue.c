/* SPDX-License-Identifier: MIT */
#include "keeper/snapdue.h"

#include "util/macro.h"

void
rsb_snapdue_init(struct rsb_snapdue *due, uint64_t interval_ns)
{
	*due = (struct rsb_snapdue){ .interval_ns = interval_ns };
}

static bool
is_kept(const struct rsb_snapdue *due)
{
	return due->kept && due->news.change == due->kept && !due->news.commands;
}

void
rsb_snapdue_tell(struct rsb_snapdue *due, const struct rsb_snapdue_news *news, uint64_t now_ns)
{
	due->news = *news;
	if (is_kept(due))
		due->dirty_ns = 0;
	else if (!due->dirty_ns)
		due->dirty_ns = now_ns;
}

/* How long there is peace after the last one. */
static uint64_t
rest_ns(const struct rsb_snapdue *due)
{
	uint64_t rest =
		rsb_max(due->took_ns, rsb_min(RSB_SNAPDUE_REST * due->took_ns, due->interval_ns));

	rest = rsb_max(rest, rsb_min(due->interval_ns, RSB_SNAPDUE_QUIET_NS));
	for (unsigned int n = 0; n < due->failed && rest < RSB_SNAPDUE_FAILED_MAX_NS; n++)
		rest *= 2;
	return due->failed ? rsb_min(rest, RSB_SNAPDUE_FAILED_MAX_NS) : rest;
}

uint64_t
rsb_snapdue_at(const struct rsb_snapdue *due)
{
	uint64_t at;

	if (!due->dirty_ns || !due->news.live)
		return 0;
	at = due->dirty_ns + due->interval_ns;
	if (due->fuzzy && !due->news.commands)
		at = due->dirty_ns;
	return due->ended_ns ? rsb_max(at, due->ended_ns + rest_ns(due)) : at;
}

void
rsb_snapdue_ended(struct rsb_snapdue *due, const struct rsb_snapdue_end *end)
{
	due->ended_ns = end->now_ns;
	due->took_ns = end->now_ns - end->begun_ns;
	if (end->r < 0) {
		due->failed++;
		return;
	}
	due->failed = 0;
	/* What was under way then is in none, as far as anybody knows. */
	due->kept = end->then.settled ? end->then.change : 0;
	due->fuzzy = end->fuzzy;
	due->dirty_ns = is_kept(due) ? 0 : end->now_ns;
}
