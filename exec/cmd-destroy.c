/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "exec/daemon.h"
#include "exec/report.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "util/cleanup.h"

struct destroy {
	struct rsb_verb_common common;
	struct rsb_json *names; /* an array: those that are gone; NULL without --json */
	bool force;
};

static int
destroy(const struct destroy *d, const char *name, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	struct rsb_verb_session_of of = { 0 };
	int r;

	r = rsb_where_find(name, env, &where, diag);
	if (r < 0)
		return r;
	r = rsb_daemon_stop(&where, d->force, diag);
	if (r < 0)
		return r;
	of = (struct rsb_verb_session_of){
		.root = where.root, .name = where.state.name, .project_dir = where.state.local_dir
	};
	r = rsb_verb_session_open(&session, &of, &d->common, env, diag);
	if (r >= 0)
		r = rsb_keeper_destroy(&session.env, &session.state, diag);
	if (r >= 0 && d->common.json)
		return rsb_json_set_str(d->names, NULL, where.state.name);
	if (r >= 0 && !d->common.quiet)
		(void)printf("%s is gone\n", where.state.name);
	return r;
}

static int
run_destroy(const struct rsb_verb *verb, int argc, char **argv, char **env)
{
	static const struct option options[] = { { "force", no_argument, NULL, 'f' }, RSB_VERB_LONG,
		{ 0 } };
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	struct destroy d = { 0 };
	int result = 0;
	int status;
	int c;

	while ((c = getopt_long(argc, argv, "f" RSB_VERB_LETTERS, options, NULL)) != -1) {
		if (c == 'f')
			d.force = true;
		else if (rsb_verb_option(verb, c, &d.common, &status))
			return status;
	}
	if (optind == argc)
		return rsb_verb_usage(verb, "name the sandboxes to destroy");
	d.names = d.common.json ? rsb_json_new_array() : NULL;
	for (; optind < argc; optind++) {
		struct rsb_diag diag = { 0 };
		int r = destroy(&d, argv[optind], env, &diag);

		if (r < 0)
			result = rsb_verb_failed(verb, r, &diag);
	}
	if (d.common.json) {
		rsb_report_init(&report);
		rsb_report_json(&report, "destroyed", d.names);
		if (rsb_report_print(&report) < 0)
			result = rsb_verb_failed(verb, -EIO, NULL);
	}
	return result;
}

const struct rsb_verb rsb_verb_destroy = {
	.name = "destroy",
	.usage = "destroy [OPTION]... SANDBOX...",
	.help = "Unmount and end sandboxes, with everything in them.",
	.more = "  -f, --force           also while files are open in the mount\n",
	.run = run_destroy,
};
