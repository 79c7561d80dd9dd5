/* SPDX-License-Identifier: MIT */
#include "exec/pausenote.h"

#include <string.h>

#include "keeper/eventlog.h"
#include "util/clock.h"
#include "util/diag.h"
#include "util/localtime.h"

/* Whether it is paused after an event of that kind. */
static bool
after(const char *kind, bool was)
{
	static const char *const runs[] = { "created", "live", "resuming", "restored" };

	if (strcmp(kind, "paused") == 0 || strcmp(kind, "resting") == 0)
		return true;
	for (size_t i = 0; i < RSB_ARRAY_SIZE(runs); i++)
		if (strcmp(kind, runs[i]) == 0)
			return false;
	return was;
}

/* What cannot be read is not written to, either. */
static bool
is_known(const struct rsb_state_dir *dir)
{
	RSB_CLEANUP(rsb_eventlog_freep) struct rsb_eventlog *log = NULL;
	bool known = false;
	int r;

	if (rsb_eventlog_open(rsb_state_path(dir), &log) < 0)
		return true;
	do {
		RSB_CLEANUP(rsb_json_freep) struct rsb_json *event = NULL;
		const char *kind;

		r = rsb_eventlog_next(log, &event);
		if (r > 0 && rsb_json_str(event, "kind", &kind) == 0)
			known = after(kind, known);
	} while (r > 0);
	return known;
}

void
rsb_pausenote(struct rsb_state_dir *dir, uint64_t end_ns)
{
	const uint64_t now_ns = rsb_wall_ns();
	char when[RSB_LOCALTIME_SIZE];
	struct rsb_diag text;

	if (is_known(dir))
		return;
	if (end_ns && end_ns <= now_ns) {
		rsb_localtime(end_ns, now_ns, when);
		(void)rsb_diag_set(&text, 0,
			"the sandbox was paused by its host: its time was over at %s", when);
	} else {
		(void)rsb_diag_set(
			&text, 0, "the sandbox was paused, by its host or by another program");
	}
	rsb_state_event(dir, "paused", text.text);
}

void
rsb_pausenote_found(const struct rsb_where *where, uint64_t end_ns)
{
	RSB_CLEANUP(rsb_state_closep) struct rsb_state_dir *dir = NULL;

	if (rsb_state_open(where->root, where->state.name, false, &dir, NULL) < 0 ||
		rsb_state_lock(dir, RSB_STATE_LOCK, false) < 0)
		return;
	rsb_pausenote(dir, end_ns);
	rsb_state_unlock(dir, RSB_STATE_LOCK);
}
