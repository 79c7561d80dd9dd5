/* SPDX-License-Identifier: MIT */
#include "exec/comeback.h"

#include <errno.h>
#include <stdio.h>

#include "exec/pausenote.h"
#include "exec/snaptake.h"
#include "keeper/recreate.h"
#include "util/clock.h"

#define TIMEOUT_NS (60 * RSB_NSEC_PER_SEC)

static void
on_progress(void *arg, uint64_t bytes)
{
	struct rsb_comeback *back = arg;

	if (!back->began)
		rsb_progress_begin(&back->progress, back->verb, back->common, "restoring");
	back->began = true;
	rsb_progress_sync(&back->progress, &(struct rsb_sync_stats){ .bytes = bytes });
}

static void
on_notice(void *arg, const char *text)
{
	struct rsb_comeback *back = arg;

	rsb_progress_clear(&back->progress);
	(void)fprintf(stderr, "rsb %s: %s\n", back->verb->name, text);
}

int
rsb_comeback_run(struct rsb_comeback *back, struct rsb_diag *diag)
{
	struct rsb_recreate how = {
		.from = back->from,
		.store_ns = RSB_SNAPTAKE_STORE_NS,
		.number = back->number,
		.timeout_ns = TIMEOUT_NS,
		.progress = on_progress,
		.notice = on_notice,
		.arg = back,
	};
	int r = rsb_recreate(&back->session->env, &how, &back->session->state, diag);

	if (back->began)
		rsb_progress_end(&back->progress, r);
	back->files = how.files;
	back->taken_ns = how.taken_ns;
	return r;
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

	if (r > 0)
		rsb_pausenote(session->dir, 0);
	if (r != -ENOENT)
		return r;
	r = rsb_comeback_run(&back, &why);
	if (r == -ENOENT)
		return r;
	/* That it is gone is not what fails here. */
	(void)rsb_diag_set(diag, r, "%s", why.text[0] ? rsb_diag_text(&why, r) : "");
	return r < 0 ? r : rsb_keeper_resume(&session->env, &session->state, ret_sandbox, diag);
}
