/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "exec/daemon.h"
#include "exec/report.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "util/cleanup.h"

struct destroy {
	const struct rsb_verb_common *common;
	struct rsb_json *names; /* an array: those that are gone; NULL without --json */
	bool force;
};

static int
destroy(const struct destroy *d, const char *name, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	const struct rsb_daemon_end end = {
		.teller = "rsb destroy", .force = d->force, .can_force = true
	};
	struct rsb_verb_session_of of = { 0 };
	int r;

	r = rsb_where_find(name, env, &where, diag);
	if (r < 0)
		return r;
	r = rsb_daemon_stop(&where, &end, diag);
	if (r < 0)
		return r;
	of = (struct rsb_verb_session_of){
		.root = where.root, .name = where.state.name, .project_dir = where.state.local_dir
	};
	r = rsb_verb_session_open(&session, &of, d->common, env, diag);
	if (r >= 0)
		r = rsb_keeper_destroy(&session.env, &session.state, diag);
	if (r >= 0 && d->common->json)
		return rsb_json_set_str(d->names, NULL, where.state.name);
	if (r >= 0 && !d->common->quiet)
		(void)printf("%s is gone\n", where.state.name);
	return r;
}

static int
run_destroy(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	struct destroy d = { .common = &call->common, .force = rsb_verb_has(call, 'f') };
	int result = 0;

	d.names = d.common->json ? rsb_json_new_array() : NULL;
	for (int i = 0; i < call->n_word; i++) {
		struct rsb_diag diag = { 0 };
		int r = destroy(&d, call->words[i], call->env, &diag);

		if (r < 0)
			result = rsb_verb_failed(verb, r, &diag);
	}
	/* A failure alone is told on stderr, as by all verbs. */
	if (d.common->json && (result == 0 || rsb_json_len(d.names) > 0)) {
		rsb_report_init(&report);
		rsb_report_json(&report, "destroyed", rsb_steal(&d.names));
		if (rsb_report_print(&report) < 0)
			result = rsb_verb_failed(verb, -EIO, NULL);
	}
	rsb_json_free(d.names);
	return result;
}

static const struct option options[] = {
	{ "force", no_argument, NULL, 'f' },
	RSB_VERB_LONG,
	{ 0 },
};

const struct rsb_verb rsb_verb_destroy = {
	.name = "destroy",
	.usage = "destroy [OPTION]... SANDBOX...",
	.help = "Unmount and end sandboxes, with everything in them.",
	.more = "  -f, --force           also while files are open in the mount, or commands run\n",
	.letters = "f" RSB_VERB_LETTERS,
	.options = options,
	.min_words = 1,
	.max_words = INT_MAX,
	.wrong_words = "name the sandboxes to destroy",
	.run = run_destroy,
};
