/* SPDX-License-Identifier: MIT */
#include "exec/comeback.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "exec/snaptake.h"
#include "keeper/recreate.h"
#include "keeper/snaprestore.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/localtime.h"

#define TIMEOUT_NS (60 * RSB_NSEC_PER_SEC)

static void
on_progress(void *arg, uint64_t bytes)
{
	struct rsb_comeback *back = arg;

	rsb_progress_sync(&back->progress, &(struct rsb_sync_stats){ .bytes = bytes });
}

static void
on_notice(void *arg, const char *text)
{
	struct rsb_comeback *back = arg;

	rsb_progress_clear(&back->progress);
	(void)fprintf(stderr, "rsb %s: %s\n", back->verb->name, text);
}

static int
choose(struct rsb_comeback *back, const struct rsb_snapstore *store, struct rsb_diag *diag)
{
	int i, r;

	if (back->number) {
		i = rsb_snapstore_find(store, back->number, diag);
		r = i < 0 ? i : rsb_snaprestore_check(store, (size_t)i, diag);
		return r < 0 ? r : i;
	}
	i = rsb_snaprestore_newest(store, on_notice, back, diag);
	if (i == -ENOENT)
		i = -EBADMSG;
	return i;
}

/* What is told is what everybody has to know who worked there. */
static void
tell(struct rsb_comeback *back, const struct rsb_snappoint *point)
{
	char when[RSB_LOCALTIME_SIZE];
	struct rsb_diag text;

	rsb_localtime(point->taken_ns, rsb_wall_ns(), when);
	(void)rsb_diag_set(&text, 0,
		"%" PRIu64 " files and directories are back as they were at %s (snapshot %" PRIu64
		"%s); what changed there later is lost",
		back->files, when, point->number,
		point->fuzzy ? ", taken while commands ran or files changed" : "");
	on_notice(back, text.text);
	rsb_state_event(back->session->dir, "restored", text.text);
}

int
rsb_comeback_run(struct rsb_comeback *back, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_snapstore_closep) struct rsb_snapstore *store = NULL;
	struct rsb_recreate how = {
		.timeout_ns = TIMEOUT_NS, .progress = on_progress, .notice = on_notice, .arg = back
	};
	struct rsb_snappoint point;
	int r;

	r = rsb_snapstore_open(back->from, RSB_SNAPTAKE_STORE_NS, &store, diag);
	if (r < 0)
		return r;
	if (!rsb_snapstore_count(store))
		return !rsb_snapstore_was_damaged(store)
			       ? -ENOENT
			       : rsb_diag_set(diag, -EBADMSG,
					 "the list of its snapshots is damaged; 'rsb snapshot remove "
					 "--all' gives them up");
	r = choose(back, store, diag);
	if (r < 0)
		return r;
	point = *rsb_snapstore_at(store, (size_t)r);
	how.store = store;
	how.at = (size_t)r;
	rsb_progress_begin(&back->progress, back->verb, back->common, "restoring");
	r = rsb_recreate(&back->session->env, &how, &back->session->state, &back->files, diag);
	rsb_progress_end(&back->progress, r);
	if (r < 0)
		return rsb_diag_set(diag, r == -ENOENT ? -EIO : r, "%s", rsb_diag_text(diag, r));
	back->taken_ns = point.taken_ns;
	tell(back, &point);
	return 0;
}

int
rsb_comeback_resume(const struct rsb_verb *verb, const struct rsb_verb_common *common,
	struct rsb_verb_session *session, struct rsb_sandbox *ret_sandbox, struct rsb_diag *diag)
{
	struct rsb_comeback back = { .verb = verb,
		.common = common,
		.session = session,
		.from = rsb_state_path(session->dir) };
	struct rsb_diag why = { 0 };
	int r = rsb_keeper_resume(&session->env, &session->state, ret_sandbox, diag);

	if (r != -ENOENT)
		return r;
	r = rsb_comeback_run(&back, &why);
	if (r == -ENOENT)
		return r;
	/* That it is gone is not what fails here. */
	(void)rsb_diag_set(diag, r, "%s", why.text[0] ? rsb_diag_text(&why, r) : "");
	return r < 0 ? r : rsb_keeper_resume(&session->env, &session->state, ret_sandbox, diag);
}
