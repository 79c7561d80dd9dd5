/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/comeback.h"
#include "exec/daemon.h"
#include "exec/report.h"
#include "exec/snapreport.h"
#include "exec/snaptake.h"
#include "exec/treesync.h"
#include "exec/until.h"
#include "exec/way.h"
#include "exec/where.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/str.h"

#define WORDS "it is 'snapshot [take]', 'list', 'restore' or 'remove', and one sandbox"

enum action { TAKE, LIST, RESTORE, REMOVE, ACTION_N };

struct snap {
	const struct rsb_verb *verb;
	const struct rsb_verb_common *common;
	enum action action;
	char *sandbox;   /* NULL: by where we are */
	uint64_t number; /* 0: the newest */
	const char *to;
	bool full;
	bool all;
};

/* ---- what is said ---- */

static int
say_taken(const struct snap *snap, const struct rsb_state *state, const struct rsb_snappoint *point,
	bool fresh)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	char bytes[RSB_PROGRESS_SIZE];

	if (snap->common->json) {
		rsb_report_init(&report);
		rsb_report_sandbox(&report, state);
		rsb_report_bool(&report, "new", fresh);
		rsb_snapreport_point(&report, point);
		return rsb_report_print(&report);
	}
	if (snap->common->quiet)
		return 0;
	rsb_progress_bytes(point->moved, bytes);
	if (fresh)
		(void)printf("%s: snapshot %" PRIu64 " of %" PRIu64 " %s: %" PRIu64
			     " changed, %" PRIu64 " removed, %s%s\n",
			state->name, point->number, point->files,
			point->files == 1 ? "file or directory" : "files and directories",
			point->changed, point->removed, bytes,
			point->fuzzy ? ", while commands ran or files changed" : "");
	else
		(void)printf("%s: nothing changed since snapshot %" PRIu64 "\n", state->name,
			point->number);
	return 0;
}

/* ---- take ---- */

static int
open_session(const struct snap *snap, const struct rsb_where *where, char **env,
	struct rsb_verb_session *session, struct rsb_diag *diag)
{
	struct rsb_verb_session_of of = { .root = where->root,
		.name = where->state.name,
		.project_dir = where->state.local_dir };

	return rsb_verb_session_open(session, &of, snap->common, env, diag);
}

static int
take(struct snap *snap, const struct rsb_where *where, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	struct rsb_snaptake take = { .verb = snap->verb,
		.common = snap->common,
		.where = where,
		.session = &session,
		.why = "asked",
		.whole = snap->full };
	struct rsb_snappoint point;
	int r;

	/* What was written in the mount is there, before. */
	rsb_treesync_settle(where->socket);
	r = open_session(snap, where, env, &session, diag);
	if (r >= 0)
		r = rsb_snaptake_run(&take, &point, diag);
	rsb_way_rest(&session, snap->verb);
	return r < 0 ? r : say_taken(snap, &session.state, &point, r == 0);
}

/* ---- list ---- */

static int
list(const struct snap *snap, const struct rsb_where *where, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
	rsb_autofree char *path = rsb_str_path(where->root, where->state.name);
	int r = path ? rsb_snapstore_look(path, &store, diag) : -ENOMEM;

	if (r < 0)
		return r;
	if (snap->common->json)
		return rsb_snapreport_json(store, &where->state);
	rsb_snapreport_table(store, &where->state);
	return 0;
}

/* ---- restore ---- */

static int
say_restored(const struct snap *snap, const struct rsb_comeback *back)
{
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	const struct rsb_state *state = &back->session->state;
	char taken[RSB_RFC3339_SIZE];
	char until[RSB_UNTIL_SIZE];

	if (snap->common->json) {
		rsb_clock_rfc3339(back->taken_ns, taken);
		rsb_report_init(&report);
		rsb_report_sandbox(&report, state);
		rsb_report_str(&report, "taken", taken);
		rsb_report_number(&report, "files", back->files);
		return rsb_report_print(&report);
	}
	if (snap->common->quiet)
		return 0;
	/* It answered just now. */
	(void)rsb_until_ask(back->session->backend, state, until);
	(void)printf("%s is restored%s%s: see its files by 'rsb mount %s%s'\n", state->name,
		until[0] ? ", lives" : "", until, state->name, state->mountpoint[0] ? "" : " DIR");
	return 0;
}

static int
say_none(const struct rsb_state *state, int r, struct rsb_diag *diag)
{
	return r == -ENOENT && !diag->text[0]
		       ? rsb_diag_set(diag, r, "there is no snapshot of %s", state->name)
		       : r;
}

/* In its own place, which must be empty: what lives is newer than any snapshot. */
static int
restore_same(struct snap *snap, const struct rsb_where *where, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	struct rsb_comeback back = { .verb = snap->verb,
		.common = snap->common,
		.session = &session,
		.number = snap->number };
	const struct rsb_daemon_end end = { .teller = "rsb snapshot", .force = true };
	int r;

	r = open_session(snap, where, env, &session, diag);
	if (r < 0)
		return r;
	r = rsb_keeper_look(&session.env, &session.state, &sandbox, diag);
	if (r >= 0)
		return rsb_diag_set(diag, -EEXIST,
			"the sandbox %s is there, and nothing in it is overwritten; --to NAME makes "
			"another one",
			session.state.name);
	if (r != -ENOENT)
		return r;
	(void)rsb_diag_set(diag, 0, "%s", ""); /* that it is gone is not what fails here */
	r = rsb_daemon_stop(where, &end, diag);
	if (r < 0)
		return r;
	back.from = rsb_state_path(session.dir);
	r = rsb_comeback_run(&back, diag);
	return r < 0 ? say_none(&session.state, r, diag) : say_restored(snap, &back);
}

/* By the host of the one that it is made of. */
static int
use_backend(struct rsb_verb_session *session, const char *kind, char **env, struct rsb_diag *diag)
{
	rsb_backend_free(session->backend);
	session->backend = NULL;
	session->env.backend = NULL;
	return rsb_keeper_backend(&session->config, env, kind, &session->env.backend, diag);
}

static int
restore_other(struct snap *snap, const struct rsb_where *where, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_verb_session_done) struct rsb_verb_session session = { 0 };
	rsb_autofree char *from = rsb_str_path(where->root, where->state.name);
	struct rsb_verb_session_of of = { .root = where->root,
		.name = snap->to,
		.project_dir = where->state.local_dir,
		.create = true };
	struct rsb_comeback back = { .verb = snap->verb,
		.common = snap->common,
		.session = &session,
		.from = from,
		.number = snap->number };
	int r;

	if (!from)
		return -ENOMEM;
	r = rsb_verb_session_open(&session, &of, snap->common, env, diag);
	if (r < 0)
		return r;
	if (session.known)
		return rsb_diag_set(diag, -EEXIST, "there is a sandbox %s already", snap->to);
	r = use_backend(&session, where->state.backend, env, diag);
	session.backend = session.env.backend;
	if (r < 0)
		return r;
	session.state = where->state;
	(void)snprintf(session.state.name, sizeof(session.state.name), "%s", snap->to);
	/* The directory and the mount point stay those of the other one. */
	session.state.local_dir[0] = '\0';
	session.state.mountpoint[0] = '\0';
	session.state.made_mountpoint = 0;
	r = rsb_comeback_run(&back, diag);
	return r < 0 ? say_none(&where->state, r, diag) : say_restored(snap, &back);
}

/* ---- remove ---- */

static int
discard(struct snap *snap, const struct rsb_where *where, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
	RSB_CLEANUP(rsb_report_done) struct rsb_report report = { 0 };
	rsb_autofree char *path = rsb_str_path(where->root, where->state.name);
	size_t n, goes;
	int r;

	r = path ? rsb_snapstore_open(path, RSB_SNAPTAKE_STORE_NS, &store, diag) : -ENOMEM;
	if (r < 0)
		return r;
	n = rsb_snapstore_count(store);
	goes = snap->all || !n ? n : rsb_snapstore_base(store, n - 1);
	r = goes || rsb_snapstore_was_damaged(store) ? rsb_snapstore_drop(store, goes) : 0;
	if (r < 0)
		return rsb_diag_set(diag, r, "the snapshots cannot be removed: %s", strerror(-r));
	if (snap->common->json) {
		rsb_report_init(&report);
		rsb_report_sandbox(&report, &where->state);
		rsb_report_number(&report, "removed", goes);
		rsb_report_number(&report, "left", n - goes);
		return rsb_report_print(&report);
	}
	if (!snap->common->quiet)
		(void)printf("%s: %zu snapshot%s removed, %zu left\n", where->state.name, goes,
			goes == 1 ? "" : "s", n - goes);
	return 0;
}

/* ---- all ---- */

static int
run(struct snap *snap, char **env, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_where_done) struct rsb_where where = { 0 };
	int r = rsb_where_find(snap->sandbox, env, &where, diag);

	if (r < 0)
		return r;
	switch (snap->action) {
	case LIST:
		return list(snap, &where, diag);
	case RESTORE:
		return snap->to ? restore_other(snap, &where, env, diag)
				: restore_same(snap, &where, env, diag);
	case REMOVE:
		return discard(snap, &where, diag);
	case TAKE:
	case ACTION_N:
		break;
	}
	return take(snap, &where, env, diag);
}

/* "SANDBOX@3", "@3", "SANDBOX". What is wrong with it; NULL: nothing. */
static const char *
read_word(struct snap *snap, const char *word)
{
	const char *at = strrchr(word, '@');

	if (at && (snap->action != RESTORE || rsb_str_u64(at + 1, INT64_MAX, &snap->number) < 0 ||
			  !snap->number))
		return snap->action == RESTORE ? "a snapshot is named as in SANDBOX@3"
					       : "only restore takes one of the snapshots";
	if (at == word)
		return NULL;
	snap->sandbox = at ? strndup(word, (size_t)(at - word)) : strdup(word);
	return snap->sandbox ? NULL : "there is no memory";
}

static const char *
read_call(struct snap *snap, const struct rsb_verb_call *call, struct rsb_diag *diag)
{
	static const char *const words[] = { "take", "list", "restore", "remove" };
	char **word = call->words;

	for (enum action a = TAKE; a < ACTION_N && *word; a++)
		if (strcmp(*word, words[a]) == 0) {
			snap->action = a;
			word++;
			break;
		}
	if (word == call->words && call->n_word > 1)
		return WORDS;
	for (size_t i = 0; i < call->n_own; i++)
		if (call->own[i].c == 't')
			snap->to = call->own[i].value;
	snap->full = rsb_verb_has(call, 'F');
	snap->all = rsb_verb_has(call, 'A');
	if (snap->full && snap->action != TAKE)
		return "--full is for a snapshot that is taken";
	if (snap->all && snap->action != REMOVE)
		return "--all is for remove";
	if (snap->to && snap->action != RESTORE)
		return "--to is for restore";
	if (snap->to && rsb_state_name_check(snap->to, diag) < 0)
		return diag->text;
	return *word ? read_word(snap, *word) : NULL;
}

static int
run_snapshot(const struct rsb_verb *verb, const struct rsb_verb_call *call)
{
	struct snap snap = { .verb = verb, .common = &call->common };
	struct rsb_diag diag = { 0 };
	const char *wrong = read_call(&snap, call, &diag);
	int r = wrong ? 0 : run(&snap, call->env, &diag);

	free(snap.sandbox);
	if (wrong)
		return rsb_verb_usage(verb, wrong);
	return r < 0 ? rsb_verb_failed(verb, r, &diag) : r;
}

static const struct option options[] = {
	{ "full", no_argument, NULL, 'F' },
	{ "to", required_argument, NULL, 't' },
	{ "all", no_argument, NULL, 'A' },
	RSB_VERB_LONG,
	{ 0 },
};

const struct rsb_verb rsb_verb_snapshot = {
	.name = "snapshot",
	.usage = "snapshot [take|list|remove] [OPTION]... [SANDBOX]\n"
		 "       rsb snapshot restore [OPTION]... [SANDBOX][@NUMBER]",
	.help = "Keep the files of a sandbox here, and make one of them again.",
	.more = "      --full            take everything, and remove the snapshots before\n"
		"      --to NAME         restore into a new sandbox of this name\n"
		"      --all             remove also the newest one and what it stands on\n",
	.letters = RSB_VERB_LETTERS,
	.options = options,
	.max_words = 2,
	.wrong_words = WORDS,
	.run = run_snapshot,
};
