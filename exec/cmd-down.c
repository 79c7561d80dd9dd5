/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exec/daemon.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "util/cleanup.h"
#include "util/str.h"

struct down {
	struct rsb_verb_common common;
	int how; /* enum rsb_config_down, -1: by configuration */
	bool force;
};

/* Only what rsb up made: the default place, and only while empty. */
static void
remove_mountpoint(const struct rsb_state *state)
{
	rsb_autofree char *made = rsb_str_printf("%s.rsb", state->local_dir);

	if (made && state->local_dir[0] && strcmp(made, state->mountpoint) == 0)
		(void)rmdir(made);
}

static int
end_sandbox(struct down *down, const struct rsb_where *where, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	struct rsb_verb_session_of of = { .root = where->root,
		.name = where->state.name,
		.backend = where->state.backend,
		.project_dir = where->state.local_dir };
	int r;

	r = rsb_verb_session_open(&session, &of, &down->common, env, diag);
	if (r < 0)
		return r;
	if (down->how < 0)
		down->how = (int)session.config.sandbox.on_down;
	switch (down->how) {
	case RSB_CONFIG_DOWN_KILL:
		return rsb_keeper_destroy(&session.env, &where->state, diag);
	case RSB_CONFIG_DOWN_PAUSE:
		r = session.backend->ops->pause(session.backend, where->state.sandbox_id, diag);
		/* Paused already, or gone: there is nothing left to pause. */
		if (r == -EBUSY || r == -ENOENT)
			return 0;
		if (r == -EOPNOTSUPP)
			return rsb_diag_set(diag, r,
				"unmounted, but still running: this host cannot pause a sandbox; "
				"'rsb down --kill' ends it, 'rsb up' mounts it again");
		return r;
	default:
		return 0;
	}
}

static int
bring_down(struct down *down, const char *name, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	int r;

	r = rsb_where_find(name, env, &where, diag);
	if (r >= 0)
		r = rsb_daemon_stop(&where, down->force, diag);
	if (r >= 0) {
		remove_mountpoint(&where.state);
		r = end_sandbox(down, &where, env, diag);
	}
	if (r >= 0 && !down->common.quiet)
		(void)printf("%s is down%s\n", where.state.name,
			down->how == RSB_CONFIG_DOWN_KILL    ? " and gone"
			: down->how == RSB_CONFIG_DOWN_PAUSE ? ", paused"
							     : ", still running");
	return r;
}

static int
run_down(const struct rsb_verb *verb, int argc, char **argv, char **env)
{
	static const struct option options[] = {
		{ "kill", no_argument, NULL, 'k' },
		{ "pause", no_argument, NULL, 'p' },
		{ "leave", no_argument, NULL, 'l' },
		{ "force", no_argument, NULL, 'f' },
		RSB_VERB_LONG,
		{ 0 },
	};
	struct down down = { .how = -1 };
	struct rsb_diag diag = { 0 };
	int n_how = 0;
	int status;
	int c;
	int r;

	while ((c = getopt_long(argc, argv, "f" RSB_VERB_LETTERS, options, NULL)) != -1) {
		n_how += c == 'k' || c == 'p' || c == 'l';
		if (c == 'k')
			down.how = RSB_CONFIG_DOWN_KILL;
		else if (c == 'p')
			down.how = RSB_CONFIG_DOWN_PAUSE;
		else if (c == 'l')
			down.how = RSB_CONFIG_DOWN_LEAVE;
		else if (c == 'f')
			down.force = true;
		else if (rsb_verb_option(verb, c, &down.common, &status))
			return status;
	}
	if (argc - optind > 1)
		return rsb_verb_usage(verb, "one sandbox at a time");
	if (n_how > 1)
		return rsb_verb_usage(verb, "--kill, --pause and --leave exclude each other");
	r = bring_down(&down, argv[optind], env, &diag);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

const struct rsb_verb rsb_verb_down = {
	.name = "down",
	.usage = "down [OPTION]... [SANDBOX]",
	.help = "Unmount a sandbox, then pause it (sandbox.on_down).",
	.more = "      --kill            end it, with everything in it\n"
		"      --pause           pause it\n"
		"      --leave           let it run until its time is over\n"
		"  -f, --force           also while files are open in the mount\n",
	.run = run_down,
};
