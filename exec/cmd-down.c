/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>

#include "exec/daemon.h"
#include "exec/report.h"
#include "exec/until.h"
#include "exec/verbs.h"
#include "exec/where.h"
#include "util/cleanup.h"

struct down {
	const struct rsb_verb_common *common;
	int how; /* enum rsb_config_down, -1: by configuration */
	bool force;
	bool cut_off;
	char until[RSB_UNTIL_SIZE]; /* it runs on */
};

/* For the control plane, where the way to the sandbox is cut and the end is forced. */
#define FORCED_NS (5 * RSB_NSEC_PER_SEC)

static int
end_sandbox(struct down *down, const struct rsb_where *where, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	struct rsb_verb_session_of of = { .root = where->root,
		.name = where->state.name,
		.project_dir = where->state.local_dir,
		.request_max_ns = down->force && down->cut_off ? FORCED_NS : 0 };
	int r;

	r = rsb_verb_session_open(&session, &of, down->common, env, diag);
	if (r < 0)
		return r;
	if (down->how < 0)
		down->how = (int)session.config.sandbox.on_down;
	switch (down->how) {
	case RSB_CONFIG_DOWN_KILL:
		return rsb_keeper_destroy(&session.env, &session.state, diag);
	case RSB_CONFIG_DOWN_PAUSE:
		r = session.backend->ops->pause(session.backend, session.state.sandbox_id, diag);
		if (r == -EBUSY)
			return 0; /* paused already */
		if (r == -ENOENT)
			return rsb_state_say_gone(where->state.name, diag);
		if (r == -EOPNOTSUPP)
			(void)rsb_until_ask(session.backend, &session.state, down->until, NULL);
		if (r == -EOPNOTSUPP)
			return rsb_diag_set(diag, r,
				"%s is unmounted, but still running%s: this host cannot pause a "
				"sandbox; 'rsb down --kill %s' ends it, 'rsb mount %s' mounts it again",
				where->state.name, down->until, where->state.name,
				where->state.name);
		return r;
	default:
		if (down->cut_off)
			return 0;
		return rsb_until_ask(session.backend, &session.state, down->until, diag);
	}
}

static int
say(const struct down *down, const struct rsb_state *state)
{
	static const struct {
		const char *word;
		const char *text;
	} ends[] = {
		[RSB_CONFIG_DOWN_KILL] = { "killed", " and gone" },
		[RSB_CONFIG_DOWN_PAUSE] = { "paused", ", paused" },
		[RSB_CONFIG_DOWN_LEAVE] = { "left", ", still running" },
	};
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };

	if (down->common->json) {
		rsb_report_init(&report);
		rsb_report_sandbox(&report, state);
		rsb_report_str(&report, "end", ends[down->how].word);
		return rsb_report_print(&report);
	}
	if (!down->common->quiet)
		(void)printf("%s is down%s%s\n", state->name, ends[down->how].text, down->until);
	return 0;
}

static int
bring_down(struct down *down, const char *name, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	struct rsb_daemon_look look;
	int r;

	r = rsb_where_find(name, env, &where, diag);
	/* what cannot be asked is no worse than what answers */
	if (r >= 0 && rsb_daemon_look(&where, &look, NULL) >= 0)
		down->cut_off = look.cut_off;
	if (r >= 0)
		r = rsb_daemon_stop(&where, down->force, diag);
	if (r >= 0)
		r = end_sandbox(down, &where, env, diag);
	return r < 0 ? r : say(down, &where.state);
}

static int
run_down(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	struct down down = { .common = &call->common, .how = -1, .force = rsb_verb_has(call, 'f') };
	struct rsb_diag diag = { 0 };
	int n_how = 0;
	int r;

	for (size_t i = 0; i < call->n_own; i++) {
		const int c = call->own[i].c;

		n_how += c != 'f';
		if (c == 'k')
			down.how = RSB_CONFIG_DOWN_KILL;
		else if (c == 'p')
			down.how = RSB_CONFIG_DOWN_PAUSE;
		else if (c == 'l')
			down.how = RSB_CONFIG_DOWN_LEAVE;
	}
	if (n_how > 1)
		return rsb_verb_usage(verb, "--kill, --pause and --leave exclude each other");
	r = bring_down(&down, call->words[0], call->env, &diag);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

static const struct option options[] = {
	{ "kill", no_argument, NULL, 'k' },
	{ "pause", no_argument, NULL, 'p' },
	{ "leave", no_argument, NULL, 'l' },
	{ "force", no_argument, NULL, 'f' },
	RSB_VERB_LONG,
	{ 0 },
};

const struct rsb_verb rsb_verb_down = {
	.name = "down",
	.usage = "down [OPTION]... [SANDBOX]",
	.help = "Unmount a sandbox, then do with it what sandbox.on_down says: pause it.",
	.more = "      --kill            end it, with everything in it\n"
		"      --pause           pause it, where its host can, which rsb-local cannot\n"
		"      --leave           let it run until its time is over\n"
		"  -f, --force           also while files are open in the mount\n",
	.letters = "f" RSB_VERB_LETTERS,
	.options = options,
	.max_words = 1,
	.wrong_words = "one sandbox at a time",
	.run = run_down,
};
