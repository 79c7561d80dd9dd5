/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>

#include "exec/daemon.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "util/cleanup.h"

static int
destroy(const struct rsb_verb_common *common, const char *name, bool force, char **env,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	struct rsb_verb_session_of of = { 0 };
	int r;

	r = rsb_where_find(name, env, &where, diag);
	if (r < 0)
		return r;
	r = rsb_daemon_stop(&where, force, diag);
	if (r < 0)
		return r;
	of = (struct rsb_verb_session_of){ .root = where.root,
		.name = where.state.name,
		.backend = where.state.backend,
		.project_dir = where.state.local_dir };
	r = rsb_verb_session_open(&session, &of, common, env, diag);
	if (r >= 0)
		r = rsb_keeper_destroy(&session.env, &where.state, diag);
	if (r >= 0 && !common->quiet)
		(void)printf("%s is gone\n", where.state.name);
	return r;
}

static int
run_destroy(const struct rsb_verb *verb, int argc, char **argv, char **env)
{
	static const struct option options[] = { { "force", no_argument, NULL, 'f' }, RSB_VERB_LONG,
		{ 0 } };
	struct rsb_verb_common common = { 0 };
	bool force = false;
	int result = 0;
	int status;
	int c;

	while ((c = getopt_long(argc, argv, "f" RSB_VERB_LETTERS, options, NULL)) != -1) {
		if (c == 'f')
			force = true;
		else if (rsb_verb_option(verb, c, &common, &status))
			return status;
	}
	if (optind == argc)
		return rsb_verb_usage(verb, "name the sandboxes to destroy");
	for (; optind < argc; optind++) {
		struct rsb_diag diag = { 0 };
		int r = destroy(&common, argv[optind], force, env, &diag);

		if (r < 0)
			result = rsb_verb_failed(verb, r, &diag);
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
