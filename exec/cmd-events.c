/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exec/daemon.h"
#include "exec/pausenote.h"
#include "exec/until.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "keeper/eventlog.h"
#include "util/clock.h"
#include "util/localtime.h"
#include "util/str.h"

#define SHOWN_MAX 4096u

/* text of the sandbox's may be in it, of which nothing reaches a terminal as it is */
static void
print_escaped(const char *text)
{
	char shown[SHOWN_MAX];

	rsb_str_escape(rsb_bytes_str(text), shown, sizeof(shown));
	(void)fputs(shown, stdout);
}

static void
print_event(const struct rsb_json *event)
{
	char when[RSB_LOCALTIME_SIZE] = "?";
	const char *time = "";
	const char *kind = "?";
	const char *text = "";
	uint64_t wall_ns;

	(void)rsb_json_str(event, "time", &time);
	(void)rsb_json_str(event, "kind", &kind);
	(void)rsb_json_str(event, "text", &text);
	if (rsb_clock_parse_rfc3339(time, &wall_ns) == 0)
		rsb_localtime_full(wall_ns, when);
	(void)printf("%s  ", when);
	print_escaped(kind);
	(void)fputs(": ", stdout);
	print_escaped(text);
	(void)putchar('\n');
}

static int
print_json(const struct rsb_json *event)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	int r = rsb_json_write(event, false, &out);

	if (r < 0)
		return r;
	(void)fwrite(rsb_buf_head(&out), 1, rsb_buf_len(&out), stdout);
	(void)putchar('\n');
	return 0;
}

/* What there is now, but for the first skip. ret_n, if any: how many that were. */
static int
print_some(struct rsb_eventlog *log, bool json, uint64_t skip, uint64_t *ret_n)
{
	uint64_t n = 0;
	int r = 0;

	while (r >= 0) {
		RSB_CLEANUP(rsb_json_freep) struct rsb_json *event = NULL;

		r = rsb_eventlog_next(log, &event);
		if (r <= 0)
			break;
		if (n++ < skip)
			continue;
		if (json)
			r = print_json(event);
		else
			print_event(event);
	}
	if (ret_n)
		*ret_n = n;
	return r;
}

/* How many are not among the last. */
static int
count_before(const char *dir, uint64_t last, uint64_t *ret_skip)
{
	RSB_CLEANUP(rsb_eventlog_freep) struct rsb_eventlog *log = NULL;
	uint64_t n = 0;
	int r;

	r = rsb_eventlog_open(dir, &log);
	if (r >= 0)
		r = print_some(log, false, UINT64_MAX, &n);
	*ret_skip = n > last ? n - last : 0;
	return r;
}

/* Until the sandbox is forgotten, or nobody reads any more. */
static int
follow(struct rsb_eventlog *log, bool json)
{
	int r = 0;

	while (r >= 0 && fflush(stdout) == 0) {
		r = rsb_eventlog_wait(log, -1);
		if (r == -EINTR)
			r = 0;
		if (r >= 0)
			r = print_some(log, json, 0, NULL);
	}
	return r == -ENOENT ? 0 : r;
}

static int
show(const struct rsb_verb_call *call, const char *dir, uint64_t last)
{
	RSB_CLEANUP(rsb_eventlog_freep) struct rsb_eventlog *log = NULL;
	const bool json = call->common.json;
	uint64_t skip = 0;
	int r = 0;

	if (last != UINT64_MAX)
		r = count_before(dir, last, &skip);
	if (r >= 0)
		r = rsb_eventlog_open(dir, &log);
	if (r >= 0)
		r = print_some(log, json, skip, NULL);
	return r < 0 || !rsb_verb_has(call, 'f') ? r : follow(log, json);
}

/* Nobody was there to write it down. */
static void
look_for_pause(const struct rsb_where *where, const struct rsb_verb_call *call)
{
	uint64_t end_ns = 0;

	if (!rsb_daemon_runs(where) && rsb_until_state(&where->state, &call->common, call->env,
					       &end_ns) == RSB_SANDBOX_PAUSED)
		rsb_pausenote_found(where, end_ns);
}

static int
run_events(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	rsb_autofree char *dir = NULL;
	uint64_t last = UINT64_MAX;
	struct rsb_diag diag = { 0 };
	int r;

	for (size_t i = 0; i < call->n_own; i++)
		if (call->own[i].c == 'n' && rsb_str_u64(call->own[i].value, UINT64_MAX, &last) < 0)
			return rsb_verb_usage(verb, "-n takes a number of events");
	r = rsb_where_find(call->words[0], call->env, &where, &diag);
	if (r >= 0) {
		look_for_pause(&where, call);
		dir = rsb_str_path(where.root, where.state.name);
		r = dir ? show(call, dir, last) : -ENOMEM;
		if (r < 0)
			(void)rsb_diag_set(&diag, r, "the events of %s cannot be read: %s",
				where.state.name, strerror(-r));
	}
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

static const struct option options[] = {
	{ "follow", no_argument, NULL, 'f' },
	{ "lines", required_argument, NULL, 'n' },
	RSB_VERB_LONG,
	{ 0 },
};

const struct rsb_verb rsb_verb_events = {
	.name = "events",
	.usage = "events [OPTION]... [SANDBOX]",
	.help = "Tell what happened to a sandbox and the way to it.",
	.more = "  -f, --follow          go on until it is forgotten\n"
		"  -n, --lines NUMBER    only so many, the latest\n",
	.letters = "fn:" RSB_VERB_LETTERS,
	.options = options,
	.max_words = 1,
	.wrong_words = "one sandbox at a time",
	.run = run_events,
};
