/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/daemon.h"
#include "exec/pausenote.h"
#include "exec/report.h"
#include "exec/until.h"
#include "exec/verbs.h"
#include "util/cleanup.h"

#define CREATE_TTL_NS (600 * RSB_NSEC_PER_SEC)

/* Running it twice gives the same sandbox. */
static int
create(const struct rsb_verb_common *common, const char *name, char **env,
	struct rsb_verb_session *session, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_keeper_create req = { .ttl_ns = CREATE_TTL_NS };
	struct rsb_verb_session_of of = { .name = name, .create = true };
	rsb_autofree char *root = NULL;
	rsb_autofree char *cwd = getcwd(NULL, 0);
	int r;

	r = rsb_state_root(env, &root, diag);
	if (r < 0)
		return r;
	of.root = root;
	of.project_dir = cwd;
	r = rsb_verb_session_open(session, &of, common, env, diag);
	if (r < 0)
		return r;
	if (!session->known)
		return rsb_keeper_create(&session->env, &req, &session->state, diag);
	r = rsb_keeper_resume(&session->env, &session->state, &sandbox, diag);
	if (r > 0) {
		rsb_pausenote(session->dir, 0);
		rsb_state_event(session->dir, "resuming", "the sandbox was paused, and runs again");
	}
	return r;
}

static int
say(const struct rsb_verb_common *common, const struct rsb_verb_session *session, char **env)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	const char *name = session->state.name;
	char until[RSB_UNTIL_SIZE];

	if (common->json) {
		rsb_report_init(&report);
		rsb_report_sandbox(&report, &session->state);
		rsb_report_bool(&report, "made", !session->known);
		return rsb_report_print(&report);
	}
	if (common->quiet)
		return 0;
	/* It answered just now. */
	(void)rsb_until_ask(session->backend, &session->state, until);
	if (rsb_daemon_keeps(name, env))
		(void)strcpy(until, " for as long as it is used");
	(void)printf("%s %s%s%s: run commands by 'rsb exec -s %s', see its files by 'rsb mount %s "
		     "DIR'\n",
		name, session->known ? "was there already" : "is made", until[0] ? ", lives" : "",
		until, name, name);
	return 0;
}

static int
run_create(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	struct rsb_diag diag = { 0 };
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	int r;

	if (rsb_state_name_check(call->words[0], &diag) < 0)
		return rsb_verb_usage(verb, diag.text);
	r = create(&call->common, call->words[0], call->env, &session, &diag);
	if (r >= 0)
		r = say(&call->common, &session, call->env);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : 0;
}

const struct rsb_verb rsb_verb_create = {
	.name = "create",
	.usage = "create [OPTION]... NAME",
	.help = "Make an empty sandbox, or find the one of that name.",
	.min_words = 1,
	.max_words = 1,
	.wrong_words = "give the sandbox one name",
	.run = run_create,
};
