/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exec/reconcile.h"
#include "exec/treesync.h"
#include "exec/way.h"
#include "exec/where.h"
#include "util/cleanup.h"

enum direction { OUT, IN, STATUS, RESOLVE, DIRECTION_N };

struct sync {
	enum direction direction;
	const char *exclude[RSB_VERB_OWN_MAX + 1];
	bool all;
	bool ours;
	bool theirs;
	const char *word; /* of the sandbox, or the path to resolve; may be NULL */
	struct rsb_treesync tree;
	struct rsb_syncguard guard;
};

/* ---- resolve ---- */

static int
say_resolved(const struct sync *sync, const struct rsb_verb_session *session,
	const struct rsb_reconciled *resolved)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	const char *whose = sync->theirs ? "theirs" : "ours";
	const char *what = sync->all ? "." : sync->word;

	if (sync->tree.common->json) {
		rsb_report_init(&report);
		rsb_report_sandbox(&report, &session->state);
		rsb_report_str(&report, "path", what);
		rsb_report_str(&report, "kept", whose);
		rsb_report_number(&report, "resolved", resolved->n);
		return rsb_report_print(&report);
	}
	if (!sync->tree.common->quiet)
		(void)printf("%s is resolved: %s is kept%s\n", sync->all ? "all" : what, whose,
			!sync->theirs     ? "; 'rsb sync in' brings it there"
			: resolved->later ? "; 'rsb sync out' brings it"
					  : "");
	return 0;
}

static int
resolve(const struct sync *sync, struct rsb_verb_session *session, struct rsb_diag *diag)
{
	const struct rsb_reconcile what = { .dir = session->state.local_dir,
		.state_dir = rsb_state_path(session->dir),
		.path = sync->all ? NULL : sync->word,
		.theirs = sync->theirs };
	struct rsb_reconciled resolved;
	int r = rsb_reconcile(&what, &resolved, diag);

	return r < 0 ? r : say_resolved(sync, session, &resolved);
}

/* ---- all ---- */

static int
under_lock(struct sync *sync, const struct rsb_where *where, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	struct rsb_verb_session_of of = { .root = where->root,
		.name = where->state.name,
		.project_dir = where->state.local_dir,
		.sync = true,
		.builtin = sync->tree.builtin };
	int r;

	r = rsb_verb_session_open(&session, &of, sync->tree.common, env, diag);
	if (r < 0)
		return r;
	if (sync->direction == RESOLVE) {
		return resolve(sync, &session, diag);
	}
	session.woken = rsb_syncguard_woken(&sync->guard);
	sync->tree.session = &session;
	r = rsb_treesync_run(&sync->tree, diag);
	rsb_way_rest(&session, sync->tree.verb);
	return r < 0 ? r : rsb_treesync_say(&sync->tree);
}

static int
run(struct sync *sync, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	int status = 0;
	int r;

	sync->guard = (struct rsb_syncguard){ .verb = sync->tree.verb,
		.name = where.state.name,
		.dir = where.state.local_dir,
		.in = sync->direction == IN && !sync->tree.dry_run };
	/* A path to resolve is one of the sandbox where we are. */
	r = rsb_where_find(
		sync->direction == RESOLVE && !sync->all ? NULL : sync->word, env, &where, diag);
	if (r >= 0 && sync->direction != RESOLVE)
		r = rsb_syncguard_begin(&sync->guard, &status);
	if (r != 0)
		return r < 0 ? r : status;
	sync->tree.guard = &sync->guard;
	/* What was written in the mount is there, before; and afterwards the mount shows it. */
	if (sync->direction != RESOLVE)
		rsb_treesync_settle(where.socket);
	r = under_lock(sync, &where, env, diag);
	if (sync->direction == IN && !sync->tree.dry_run)
		rsb_treesync_settle(where.socket);
	return r;
}

/* What is wrong with it; NULL: nothing. */
static const char *
read_call(struct sync *sync, const struct rsb_verb_call *call)
{
	static const char *const words[] = { "out", "in", "status", "resolve" };
	size_t n_exclude = 0;

	while (sync->direction < DIRECTION_N && strcmp(call->words[0], words[sync->direction]) != 0)
		sync->direction++;
	if (sync->direction == DIRECTION_N)
		return "it is 'sync out', 'sync in', 'sync status' or 'sync resolve'";
	sync->word = call->words[1];
	for (size_t i = 0; i < call->n_own; i++)
		if (call->own[i].c == 'x')
			sync->exclude[n_exclude++] = call->own[i].value;
	sync->all = rsb_verb_has(call, 'A');
	sync->ours = rsb_verb_has(call, 'O');
	sync->theirs = rsb_verb_has(call, 'T');
	sync->tree.exclude = sync->exclude;
	sync->tree.out = sync->direction != IN;
	sync->tree.dry_run = sync->direction == STATUS || rsb_verb_has(call, 'n');
	sync->tree.delete_many = rsb_verb_has(call, 'D');
	sync->tree.trust_git = rsb_verb_has(call, 'G');
	sync->tree.builtin = rsb_verb_has(call, 'B') || sync->direction > IN;
	if (sync->direction == RESOLVE)
		return !sync->word && !sync->all    ? "resolve takes a path, or --all"
		       : sync->ours == sync->theirs ? "resolve takes one of --ours and --theirs"
						    : NULL;
	return sync->ours || sync->theirs || sync->all
		       ? "--ours, --theirs and --all are for resolve"
		       : NULL;
}

static int
run_sync(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	struct sync sync = { .tree = { .verb = verb, .common = &call->common } };
	struct rsb_diag diag = { 0 };
	const char *wrong = read_call(&sync, call);
	int r;

	if (wrong)
		return rsb_verb_usage(verb, wrong);
	r = run(&sync, call->env, &diag);
	rsb_treesync_done(&sync.tree);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : r;
}

static const struct option options[] = {
	{ "dry-run", no_argument, NULL, 'n' },
	{ "delete-many", no_argument, NULL, 'D' },
	{ "trust-git", no_argument, NULL, 'G' },
	{ "builtin", no_argument, NULL, 'B' },
	{ "exclude", required_argument, NULL, 'x' },
	{ "all", no_argument, NULL, 'A' },
	{ "ours", no_argument, NULL, 'O' },
	{ "theirs", no_argument, NULL, 'T' },
	RSB_VERB_LONG,
	{ 0 },
};

const struct rsb_verb rsb_verb_sync = {
	.name = "sync",
	.usage = "sync out|in|status [OPTION]... [SANDBOX]\n"
		 "       rsb sync resolve --ours|--theirs PATH\n"
		 "       rsb sync resolve --ours|--theirs --all [SANDBOX]",
	.help = "Bring what changed in the sandbox to the directory of 'rsb up', or the other way.",
	.more = "  -n, --dry-run         tell what would be done\n"
		"      --delete-many     also delete more than 20 files and a tenth of all\n"
		"      --trust-git       also bring hooks and settings of git\n"
		"      --exclude PATTERN leave out what matches, gitignore syntax\n"
		"      --builtin         whatever sync.in_command and sync.out_command say\n"
		"      --ours, --theirs  which side of a conflict is kept\n"
		"      --all             resolve all that there are\n",
	.letters = "n" RSB_VERB_LETTERS,
	.options = options,
	.min_words = 1,
	.max_words = 2,
	.wrong_words = "it is 'sync out', 'sync in', 'sync status' or 'sync resolve', and one "
		       "sandbox or path",
	.run = run_sync,
};
