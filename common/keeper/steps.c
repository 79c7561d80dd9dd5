/* SPDX-License-Identifier: MIT */
#include "keeper/steps.h"

#include <errno.h>
#include <string.h>

#include "keeper/heart.h"
#include "keeper/recreate.h"
#include "util/backoff.h"
#include "util/clock.h"

#define BACKOFF_BASE_NS (250 * RSB_NSEC_PER_MSEC)
#define BACKOFF_MAX_NS (10 * RSB_NSEC_PER_SEC)
#define RESTORE_NS (60 * RSB_NSEC_PER_SEC) /* without any progress */
/* Each may cost money: what failed so often needs the user. */
#define RECREATE_MAX 5u

void
rsb_steps_say(struct rsb_keeper *keeper, const char *kind, const char *text)
{
	rsb_state_event(keeper->env.dir, kind, text);
	if (keeper->event)
		keeper->event(keeper->arg, kind, text);
}

void
rsb_steps_fail_calls(struct rsb_keeper *keeper)
{
	rsb_mutex_lock(&keeper->lock);
	keeper->failing = true;
	rsb_mutex_unlock(&keeper->lock);
	rsb_link_fail(keeper->link, -EIO);
}

/* Without memory there is none. */
static void
note_way(struct rsb_keeper *keeper, const struct rsb_keeper_target *target)
{
	struct rsb_keeper_target way = { 0 };
	struct rsb_keeper_target old;
	int r = rsb_keeper_target_copy(target, &way);

	if (r < 0)
		return;
	rsb_mutex_lock(&keeper->lock);
	old = keeper->way;
	keeper->way = way;
	keeper->way.target.headers = (const char *const *)keeper->way.address.headers;
	rsb_mutex_unlock(&keeper->lock);
	rsb_keeper_target_done(&old);
}

static enum rsb_recover_event
act_connect(struct rsb_keeper *keeper)
{
	RSB_CLEANUP(rsb_keeper_target_done) struct rsb_keeper_target target = { 0 };
	int r;

	r = rsb_keeper_target(&keeper->env, &keeper->saved, &keeper->sandbox, &target);
	if (r == 0)
		r = rsb_link_connect(keeper->link, &target.target);
	if (r == 0 || r == -EALREADY) {
		note_way(keeper, &target);
		return RSB_RECOVER_EVENT_N; /* the link will say */
	}
	(void)rsb_diag_set(&keeper->why, r, "cannot connect: %s", rsb_diag_text(NULL, r));
	return RSB_RECOVER_FAILED;
}

static enum rsb_recover_event
act_wait(struct rsb_keeper *keeper)
{
	uint32_t random = 0;
	uint64_t wait_ns;

	/* without random bytes: the longest */
	if (rsb_random(&random, sizeof(random)) < 0)
		random = UINT32_MAX;
	wait_ns = rsb_backoff_ns(keeper->n_wait++, BACKOFF_BASE_NS, BACKOFF_MAX_NS, random);
	wait_ns = rsb_max(wait_ns, keeper->retry_after_ns);
	keeper->retry_after_ns = 0;
	keeper->timer_ns = rsb_now_ns() + wait_ns;
	return RSB_RECOVER_EVENT_N;
}

static enum rsb_recover_event
act_ask(struct rsb_keeper *keeper)
{
	struct rsb_backend *backend = keeper->env.backend;
	struct rsb_sandbox sandbox;
	int r;

	r = backend->ops->get(backend, keeper->saved.sandbox_id, &sandbox, &keeper->why);
	/* Nobody wants one to be made that nobody uses. */
	if (r == -ENOENT && rsb_life_is_idle(&keeper->life, rsb_now_ns()))
		return RSB_RECOVER_IS_RESTING;
	if (r == -ENOENT)
		return RSB_RECOVER_IS_GONE;
	if (r == -EACCES)
		return RSB_RECOVER_IS_FORBIDDEN;
	if (r == -EAGAIN)
		keeper->retry_after_ns = backend->retry_after_ns;
	if (r < 0)
		return RSB_RECOVER_IS_UNCLEAR;
	rsb_sandbox_done(&keeper->sandbox);
	keeper->sandbox = sandbox;
	if (sandbox.left_ns)
		keeper->heartbeat_ns =
			rsb_min(keeper->heartbeat_ns, rsb_heart_next(keeper, sandbox.left_ns));
	if (sandbox.state == RSB_SANDBOX_PAUSED)
		return rsb_life_is_idle(&keeper->life, rsb_now_ns()) ? RSB_RECOVER_IS_RESTING
								     : RSB_RECOVER_IS_PAUSED;
	return keeper->refused ? RSB_RECOVER_IS_BARE : RSB_RECOVER_IS_RUNNING;
}

/* A stream that is cut by the pause may be kept for alive over there. */
static enum rsb_recover_event
act_pause(struct rsb_keeper *keeper)
{
	struct rsb_backend *backend = keeper->env.backend;
	int r;

	rsb_steps_say(keeper, "renewing",
		"the sandbox's host would end it soon; it is paused and resumed, which begins its time anew");
	keeper->live_ns = 0; /* this end of the connection is no news */
	rsb_link_disconnect(keeper->link, -ECANCELED);
	r = backend->ops->pause(backend, keeper->saved.sandbox_id, &keeper->why);
	if (r == -ENOENT)
		return RSB_RECOVER_IS_GONE;
	if (r < 0 && r != -EBUSY)
		rsb_steps_say(keeper, "failed", rsb_diag_text(&keeper->why, r));
	return r < 0 && r != -EBUSY ? RSB_RECOVER_FAILED : RSB_RECOVER_IS_PAUSED;
}

/* No outage: nobody waits. */
static enum rsb_recover_event
act_rest(struct rsb_keeper *keeper)
{
	rsb_steps_say(keeper, "resting",
		"the sandbox was not used for long and does not run; what is done next brings it back");
	rsb_mutex_lock(&keeper->lock);
	keeper->down_ns = 0;
	rsb_mutex_unlock(&keeper->lock);
	keeper->attempts = 0;
	keeper->timer_ns = 0;
	return RSB_RECOVER_EVENT_N;
}

static enum rsb_recover_event
act_resume(struct rsb_keeper *keeper)
{
	struct rsb_sandbox sandbox;
	int r;

	rsb_steps_say(keeper, "resuming", "the sandbox was paused; it is being resumed");
	r = rsb_keeper_resume(&keeper->env, &keeper->saved, &sandbox, &keeper->why);
	if (r == -ENOENT)
		return RSB_RECOVER_IS_GONE;
	if (r == -EACCES)
		return RSB_RECOVER_IS_FORBIDDEN;
	if (r < 0)
		return RSB_RECOVER_FAILED;
	rsb_sandbox_done(&keeper->sandbox);
	keeper->sandbox = sandbox;
	keeper->heartbeat_ns = rsb_now_ns(); /* to see when this one ends */
	keeper->attempts = 0;
	keeper->refused = false;
	return RSB_RECOVER_DONE;
}

static enum rsb_recover_event
act_deploy(struct rsb_keeper *keeper)
{
	struct rsb_diag why = { 0 };
	struct rsb_diag text;
	int r;

	rsb_link_why(keeper->link, &why);
	(void)rsb_diag_set(&text, 0, "the sandbox runs, its sidecar is started anew: %s",
		rsb_diag_text(&why, -ECONNREFUSED));
	rsb_steps_say(keeper, "restarting", text.text);
	r = rsb_keeper_deploy(&keeper->env, &keeper->saved, &keeper->sandbox, &keeper->why);
	if (r < 0) {
		rsb_steps_say(keeper, "failed", rsb_diag_text(&keeper->why, r));
		return RSB_RECOVER_FAILED;
	}
	keeper->attempts = 0;
	keeper->refused = false;
	return RSB_RECOVER_DONE;
}

/* ---- another sandbox ---- */

static void
say_notice(void *arg, const char *text)
{
	rsb_steps_say(arg, "snapshot", text);
}

static void
say_restored(void *arg, const char *text)
{
	struct rsb_keeper *keeper = arg;

	if (keeper->restored)
		keeper->restored(keeper->arg, text);
	else
		rsb_steps_say(keeper, "restored", text);
}

/* From now on it is ended with us. */
static int
set_haul(void *arg, struct rsb_haul *haul)
{
	struct rsb_keeper *keeper = arg;
	int r;

	rsb_mutex_lock(&keeper->lock);
	keeper->haul = haul;
	r = keeper->stop ? -ECANCELED : 0;
	rsb_mutex_unlock(&keeper->lock);
	return r;
}

/* Everything of the one before is over: another session, with state's sandbox. */
static int
move_to(struct rsb_keeper *keeper, const struct rsb_state *state)
{
	RSB_CLEANUP(rsb_secret_done) struct rsb_secret key = { 0 };
	struct rsb_sandbox sandbox;
	int r;

	r = rsb_state_key(keeper->env.dir, &key);
	if (r < 0)
		return rsb_diag_set(&keeper->why, r, "the sidecar's key cannot be read: %s",
			rsb_diag_text(NULL, r));
	r = rsb_keeper_resume(&keeper->env, state, &sandbox, &keeper->why);
	if (r < 0)
		return r;
	rsb_sandbox_done(&keeper->sandbox);
	keeper->sandbox = sandbox;
	r = rsb_link_reset(keeper->link, state->sandbox_id, &key);
	if (r < 0)
		return r;
	rsb_mutex_lock(&keeper->lock);
	keeper->saved = *state;
	rsb_mutex_unlock(&keeper->lock);
	return 0;
}

/* Under the state lock. Somebody else may have done it already. */
static int
recreate(struct rsb_keeper *keeper)
{
	struct rsb_recreate how = {
		.from = rsb_state_path(keeper->env.dir),
		.timeout_ns = RESTORE_NS,
		.notice = say_notice,
		.restored = say_restored,
		.haul = set_haul,
		.arg = keeper,
	};
	struct rsb_state state;
	int r;

	r = rsb_state_load(keeper->env.dir, &state, &keeper->why);
	if (r == 0 && strcmp(state.sandbox_id, keeper->saved.sandbox_id) == 0) {
		rsb_steps_say(keeper, "recreating",
			"the sandbox does not exist any more; another one is made of its last "
			"snapshot, if there is one");
		r = rsb_recreate(&keeper->env, &how, &state, &keeper->why);
	}
	return r < 0 ? r : move_to(keeper, &state);
}

/* What comes again if it is tried again. */
static bool
is_hopeless(int r)
{
	return r == -ENOENT || r == -EBADMSG || r == -EINVAL || r == -ENOSPC || r == -EFBIG;
}

static enum rsb_recover_event
act_recreate(struct rsb_keeper *keeper)
{
	int r;

	keeper->why.text[0] = '\0';
	r = rsb_state_lock(keeper->env.dir, RSB_STATE_LOCK, false);
	/* Who has it may be making it. */
	if (r < 0)
		return RSB_RECOVER_FAILED;
	r = recreate(keeper);
	rsb_state_unlock(keeper->env.dir, RSB_STATE_LOCK);
	if (r == -EACCES)
		return RSB_RECOVER_IS_FORBIDDEN;
	if (r < 0 && (is_hopeless(r) || ++keeper->n_recreate >= RECREATE_MAX))
		return RSB_RECOVER_HOPELESS;
	if (r < 0) {
		rsb_steps_say(keeper, "failed", rsb_diag_text(&keeper->why, r));
		return RSB_RECOVER_FAILED;
	}
	keeper->n_recreate = 0;
	keeper->attempts = 0;
	keeper->refused = false;
	keeper->heartbeat_ns = rsb_now_ns(); /* to see when this one ends */
	return RSB_RECOVER_DONE;
}

static enum rsb_recover_event
act_give_up(struct rsb_keeper *keeper, enum rsb_recover_event cause)
{
	int r = cause == RSB_RECOVER_HOPELESS ? -ENOENT : -EACCES;
	struct rsb_diag text = { 0 };

	if (cause == RSB_RECOVER_HOPELESS)
		(void)rsb_diag_set(&text, r, "the sandbox %s does not exist any more, and %s",
			keeper->saved.sandbox_id,
			keeper->why.text[0] ? keeper->why.text : "there is no snapshot of it");
	else
		(void)rsb_diag_set(&text, r, "the control plane refuses the API key");
	rsb_steps_say(keeper, "lost", text.text);
	rsb_steps_fail_calls(keeper);
	keeper->timer_ns = 0;
	rsb_mutex_lock(&keeper->lock);
	keeper->lost_r = r;
	keeper->lost = text;
	rsb_mutex_unlock(&keeper->lock);
	return RSB_RECOVER_EVENT_N;
}

enum rsb_recover_event
rsb_steps_act(
	struct rsb_keeper *keeper, enum rsb_recover_action action, enum rsb_recover_event cause)
{
	switch (action) {
	case RSB_RECOVER_NOTHING:
		break;
	case RSB_RECOVER_CONNECT:
		return act_connect(keeper);
	case RSB_RECOVER_WAIT:
		return act_wait(keeper);
	case RSB_RECOVER_ASK:
		return act_ask(keeper);
	case RSB_RECOVER_PAUSE:
		return act_pause(keeper);
	case RSB_RECOVER_RESUME:
		return act_resume(keeper);
	case RSB_RECOVER_REST:
		return act_rest(keeper);
	case RSB_RECOVER_DEPLOY:
		return act_deploy(keeper);
	case RSB_RECOVER_RECREATE:
		return act_recreate(keeper);
	case RSB_RECOVER_GIVE_UP:
		return act_give_up(keeper, cause);
	}
	return RSB_RECOVER_EVENT_N;
}
