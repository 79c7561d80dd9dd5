/* SPDX-License-Identifier: MIT */
#include "exec/way.h"

#include <errno.h>
#include <stdio.h>

#include "exec/pausenote.h"
#include "exec/until.h"
#include "util/cleanup.h"

#define TIMEOUT_NS (60 * RSB_NSEC_PER_SEC)

void
rsb_way_done(struct rsb_way *way)
{
	rsb_keeper_target_done(&way->target);
	rsb_secret_done(&way->key);
}

int
rsb_way_find(struct rsb_verb_session *session, struct rsb_way *way, struct rsb_diag *diag)
{
	RSB_CLEANUP(rsb_sandbox_done) struct rsb_sandbox sandbox = { 0 };
	int r;

	r = rsb_keeper_resume(&session->env, &session->state, &sandbox, diag);
	if (r > 0) {
		rsb_pausenote(session->dir, 0);
		rsb_state_event(session->dir, "resuming", "the sandbox was paused, and runs again");
		session->was_paused = true;
		if (session->woken)
			*session->woken = true;
	}
	if (r >= 0)
		r = rsb_state_key(session->dir, &way->key);
	if (r >= 0)
		r = rsb_keeper_target(&session->env, &session->state, &sandbox, &way->target);
	if (r < 0)
		return r;
	way->far = (struct rsb_sync_far){ .target = &way->target.target,
		.sandbox_id = session->state.sandbox_id,
		.key = &way->key,
		.timeout_ns = TIMEOUT_NS };
	return 0;
}

void
rsb_way_rest(struct rsb_verb_session *session, const struct rsb_verb *verb)
{
	const struct rsb_state *state = &session->state;
	char until[RSB_UNTIL_SIZE];
	struct rsb_diag diag = { 0 };
	int r;

	/* Whoever came meanwhile uses it. */
	if (!session->was_paused || rsb_state_has_daemon(session->dir))
		return;
	r = session->backend->ops->pause(session->backend, state->sandbox_id, &diag);
	/* It is, or is about to be. */
	if (r >= 0 || r == -EBUSY) {
		if (session->woken)
			*session->woken = false;
		rsb_state_event(session->dir, "paused", "the sandbox is paused again");
		return;
	}
	(void)rsb_until_ask(session->backend, state, until);
	(void)fprintf(stderr, "rsb %s: %s was paused, and is running now%s: %s\n", verb->name,
		state->name, until, rsb_diag_text(&diag, r));
}
