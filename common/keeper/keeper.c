/* SPDX-License-Identifier: MIT */
#include "keeper/keeper.h"

#include <errno.h>
#include <string.h>

#include "keeper/haul.h"
#include "keeper/heart.h"
#include "keeper/steps.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/thread.h"

#define RSB_LOG_MODULE "keeper"
#include "util/log.h"

#define LOOK_NS RSB_NSEC_PER_SEC /* while the link is not live for good */
#define AWAKE_STEP_NS (5 * RSB_NSEC_PER_SEC)

const char *
rsb_keeper_state_name(enum rsb_keeper_state state)
{
	static const char *const names[] = {
		[RSB_KEEPER_STARTING] = "starting",
		[RSB_KEEPER_LIVE] = "live",
		[RSB_KEEPER_SUSPECT] = "suspect",
		[RSB_KEEPER_RECONNECTING] = "reconnecting",
		[RSB_KEEPER_RESUMING] = "resuming",
		[RSB_KEEPER_RESTARTING] = "restarting",
		[RSB_KEEPER_RECREATING] = "recreating",
		[RSB_KEEPER_RESTING] = "resting",
		[RSB_KEEPER_LOST] = "lost",
		[RSB_KEEPER_STOPPED] = "stopped",
	};

	return names[state];
}

static void
set_state(struct rsb_keeper *keeper, enum rsb_keeper_state state)
{
	rsb_mutex_lock(&keeper->lock);
	if (!keeper->stop)
		keeper->state = state;
	rsb_cond_broadcast(&keeper->cond);
	rsb_mutex_unlock(&keeper->lock);
}

/* ---- the thread ---- */

static bool
stopping(struct rsb_keeper *keeper)
{
	bool stop;

	rsb_mutex_lock(&keeper->lock);
	stop = keeper->stop;
	rsb_mutex_unlock(&keeper->lock);
	return stop;
}

/* From one event through all actions that follow from it without a wait. */
static void
handle(struct rsb_keeper *keeper, enum rsb_recover_event event)
{
	struct rsb_recover_step step;

	while (event != RSB_RECOVER_EVENT_N && !stopping(keeper)) {
		step = rsb_recover_next(rsb_keeper_state(keeper), event, keeper->attempts);
		/* the reason of the end is there before the state says so */
		if (step.action != RSB_RECOVER_GIVE_UP)
			set_state(keeper, step.state);
		rsb_dbg("event %d: state %s, action %d", (int)event,
			rsb_keeper_state_name(step.state), (int)step.action);
		event = rsb_steps_act(keeper, step.action, event);
		if (step.action == RSB_RECOVER_GIVE_UP)
			set_state(keeper, step.state);
	}
}

/* {lock} */
static uint64_t
awake_locked(struct rsb_keeper *keeper)
{
	return rsb_awake_ns(&keeper->awake, rsb_now_ns());
}

static void
begin_outage(struct rsb_keeper *keeper)
{
	rsb_mutex_lock(&keeper->lock);
	if (!keeper->down_ns)
		keeper->down_ns = awake_locked(keeper);
	rsb_mutex_unlock(&keeper->lock);
}

/*
 * A welcome alone ends no outage: a peer that breaks the rules after each would keep callers
 * waiting for ever. It takes some seconds, or an answer.
 */
static void
try_settle(struct rsb_keeper *keeper)
{
	struct rsb_link_stats stats;

	if (!keeper->live_ns || keeper->settled)
		return;
	rsb_link_stats(keeper->link, &stats);
	rsb_mutex_lock(&keeper->lock);
	keeper->settled = stats.replies != keeper->n_reply ||
			  rsb_now_ns() - keeper->live_ns >= RSB_KEEPER_SETTLE_NS;
	if (keeper->settled)
		keeper->down_ns = 0;
	rsb_mutex_unlock(&keeper->lock);
	if (!keeper->settled)
		return;
	keeper->attempts = 0;
	keeper->n_wait = 0;
}

static void
link_is_live(struct rsb_keeper *keeper)
{
	bool failing, again = keeper->live_ns != 0;

	rsb_mutex_lock(&keeper->lock);
	failing = keeper->failing;
	keeper->failing = false;
	/* it was only suspect */
	if (again && keeper->settled)
		keeper->down_ns = 0;
	rsb_mutex_unlock(&keeper->lock);
	if (failing)
		rsb_link_fail(keeper->link, 0);
	if (!again) {
		rsb_steps_say(keeper, "live", "the sandbox is connected");
		keeper->live_ns = rsb_now_ns();
		keeper->settled = false;
	}
	keeper->refused = false;
	keeper->timer_ns = 0;
	handle(keeper, RSB_RECOVER_LINK_LIVE);
}

static void
link_is_suspect(struct rsb_keeper *keeper)
{
	try_settle(keeper);
	begin_outage(keeper);
	handle(keeper, RSB_RECOVER_LINK_SUSPECT);
}

static void
link_is_down(struct rsb_keeper *keeper, int reason)
{
	bool was_live = keeper->live_ns != 0;
	enum rsb_recover_event event;
	struct rsb_diag why;

	if (was_live && rsb_keeper_state(keeper) == RSB_KEEPER_LIVE)
		try_settle(keeper);
	begin_outage(keeper);
	if (!was_live || !keeper->settled)
		keeper->attempts++;
	keeper->live_ns = 0;
	rsb_link_why(keeper->link, &why);
	if (was_live)
		rsb_steps_say(keeper, "down", rsb_diag_text(&why, reason));
	event = rsb_recover_link_event(reason);
	keeper->refused = event == RSB_RECOVER_LINK_REFUSED;
	handle(keeper, event);
}

static void
look_at_link(struct rsb_keeper *keeper)
{
	enum rsb_link_state state;
	bool changed, new_epoch;
	int reason;

	rsb_mutex_lock(&keeper->lock);
	changed = keeper->link_changed;
	state = keeper->link_state;
	reason = keeper->link_reason;
	new_epoch = keeper->new_epoch;
	keeper->link_changed = false;
	keeper->new_epoch = false;
	rsb_mutex_unlock(&keeper->lock);
	if (new_epoch)
		rsb_steps_say(keeper, "epoch",
			"the sidecar lost its memory: open files and commands of before are gone");
	/* it may have come up before its owner knew whom to tell */
	if (!changed && !keeper->live_ns && rsb_link_connection(keeper->link) == RSB_LINK_LIVE) {
		link_is_live(keeper);
		return;
	}
	if (!changed)
		return;
	if (state == RSB_LINK_LIVE)
		link_is_live(keeper);
	else if (state == RSB_LINK_SUSPECT)
		link_is_suspect(keeper);
	else if (state == RSB_LINK_DOWN)
		link_is_down(keeper, reason);
}

/* Whoever made a call waits for it. */
static void
wake_if_used(struct rsb_keeper *keeper)
{
	if (rsb_keeper_state(keeper) != RSB_KEEPER_RESTING || rsb_heart_is_idle(keeper))
		return;
	begin_outage(keeper);
	handle(keeper, RSB_RECOVER_USED);
}

static uint64_t
earliest(struct rsb_keeper *keeper)
{
	uint64_t deadline_ns = keeper->heartbeat_ns;

	if (!keeper->settled || keeper->state != RSB_KEEPER_LIVE)
		deadline_ns = rsb_min(deadline_ns, rsb_now_ns() + LOOK_NS);
	if (keeper->timer_ns)
		deadline_ns = rsb_min(deadline_ns, keeper->timer_ns);
	return deadline_ns;
}

static void *
run(void *arg)
{
	struct rsb_keeper *keeper = arg;
	uint64_t now_ns;

	handle(keeper, RSB_RECOVER_BEGIN);
	for (;;) {
		rsb_mutex_lock(&keeper->lock);
		while (!keeper->stop && !keeper->link_changed &&
			rsb_cond_wait_until(&keeper->cond, &keeper->lock, earliest(keeper)) == 0)
			;
		rsb_mutex_unlock(&keeper->lock);
		if (stopping(keeper))
			return NULL;
		look_at_link(keeper);
		try_settle(keeper);
		now_ns = rsb_now_ns();
		if (keeper->timer_ns && now_ns >= keeper->timer_ns) {
			keeper->timer_ns = 0;
			handle(keeper, RSB_RECOVER_TIMER);
		}
		if (now_ns >= keeper->heartbeat_ns)
			handle(keeper, rsb_heart_beat(keeper));
		wake_if_used(keeper);
		rsb_keeper_tick(keeper);
	}
}

/* After recover_wait nobody is kept waiting any more; the search goes on. */
void
rsb_keeper_tick(struct rsb_keeper *keeper)
{
	uint64_t now_ns;
	bool fails;

	rsb_mutex_lock(&keeper->lock);
	now_ns = awake_locked(keeper);
	fails = !keeper->stop && !keeper->failing && keeper->down_ns &&
		keeper->state != RSB_KEEPER_LIVE &&
		now_ns - keeper->down_ns >= keeper->env.config->keeper.recover_wait_ns;
	keeper->failing |= fails;
	rsb_mutex_unlock(&keeper->lock);
	if (!fails)
		return;
	rsb_link_fail(keeper->link, -EIO);
	rsb_steps_say(
		keeper, "failing", "the sandbox was not reached in time: calls fail until it is");
}

/* ---- from outside ---- */

int
rsb_keeper_start(const struct rsb_keeper_config *config, struct rsb_keeper **ret_keeper)
{
	struct rsb_keeper *keeper = rsb_new(struct rsb_keeper);
	int r;

	if (!keeper)
		return -ENOMEM;
	keeper->env = config->env;
	keeper->saved = *config->state;
	keeper->link = config->link;
	keeper->event = config->event;
	keeper->restored = config->restored;
	keeper->arg = config->arg;
	keeper->state = RSB_KEEPER_STARTING;
	keeper->awake.step_ns = AWAKE_STEP_NS;
	keeper->down_ns = rsb_awake_ns(&keeper->awake, rsb_now_ns());
	rsb_life_init(&keeper->life, keeper->env.config->keeper.idle_limit_ns, rsb_now_ns());
	keeper->heartbeat_ns = rsb_heart_next(keeper, UINT64_MAX);
	rsb_mutex_init(&keeper->lock);
	rsb_cond_init(&keeper->cond);
	*ret_keeper = keeper; /* before the thread, which is heard of through the link at once */
	r = rsb_thread_start("rsb-keeper", run, keeper, &keeper->thread);
	if (r == 0)
		return 0;
	*ret_keeper = NULL;
	rsb_cond_done(&keeper->cond);
	rsb_mutex_done(&keeper->lock);
	free(keeper);
	return r;
}

void
rsb_keeper_link_state(
	struct rsb_keeper *keeper, enum rsb_link_state state, int reason, bool new_epoch)
{
	struct rsb_link_stats stats;

	rsb_link_stats(keeper->link, &stats);
	rsb_mutex_lock(&keeper->lock);
	keeper->new_epoch |= new_epoch;
	/* our own attempts and our own verdict are no news */
	if (state == RSB_LINK_LIVE || state == RSB_LINK_SUSPECT || state == RSB_LINK_DOWN) {
		if (state == RSB_LINK_LIVE)
			keeper->n_reply = stats.replies;
		keeper->link_state = state;
		keeper->link_reason = reason;
		keeper->link_changed = true;
	}
	/* to bring the link up is more urgent than what the thread may be waiting for */
	if (state != RSB_LINK_LIVE && keeper->beating)
		rsb_backend_abort(keeper->env.backend);
	rsb_cond_broadcast(&keeper->cond);
	rsb_mutex_unlock(&keeper->lock);
}

enum rsb_keeper_state
rsb_keeper_state(struct rsb_keeper *keeper)
{
	enum rsb_keeper_state state;

	rsb_mutex_lock(&keeper->lock);
	state = keeper->state;
	rsb_mutex_unlock(&keeper->lock);
	return state;
}

int
rsb_keeper_way(struct rsb_keeper *keeper, struct rsb_keeper_target *ret_target,
	char ret_id[static RSB_SANDBOX_ID_MAX + 1])
{
	int r = -ENOTCONN;

	rsb_mutex_lock(&keeper->lock);
	if (keeper->state == RSB_KEEPER_LIVE && keeper->way.url)
		r = rsb_keeper_target_copy(&keeper->way, ret_target);
	strcpy(ret_id, keeper->saved.sandbox_id);
	rsb_mutex_unlock(&keeper->lock);
	return r;
}

void
rsb_keeper_id(struct rsb_keeper *keeper, char ret_id[static RSB_SANDBOX_ID_MAX + 1])
{
	rsb_mutex_lock(&keeper->lock);
	strcpy(ret_id, keeper->saved.sandbox_id);
	rsb_mutex_unlock(&keeper->lock);
}

uint64_t
rsb_keeper_down_ns(struct rsb_keeper *keeper)
{
	uint64_t down_ns = 0;

	rsb_mutex_lock(&keeper->lock);
	if (keeper->down_ns && keeper->state != RSB_KEEPER_LIVE)
		down_ns = awake_locked(keeper) - keeper->down_ns;
	rsb_mutex_unlock(&keeper->lock);
	return down_ns;
}

bool
rsb_keeper_keeps(struct rsb_keeper *keeper)
{
	bool keeps;

	rsb_mutex_lock(&keeper->lock);
	/* Only then its life is extended (keeper/heart.h). */
	keeps = !keeper->said_idle && keeper->state == RSB_KEEPER_LIVE;
	rsb_mutex_unlock(&keeper->lock);
	return keeps;
}

int
rsb_keeper_wait(struct rsb_keeper *keeper, uint64_t timeout_ns, struct rsb_diag *diag)
{
	uint64_t deadline_ns = rsb_now_ns() + timeout_ns;
	int r = 0;

	rsb_mutex_lock(&keeper->lock);
	while (r == 0 && keeper->state != RSB_KEEPER_LIVE && keeper->state != RSB_KEEPER_LOST)
		r = rsb_cond_wait_until(&keeper->cond, &keeper->lock, deadline_ns);
	if (keeper->state == RSB_KEEPER_LOST)
		r = rsb_diag_set(diag, keeper->lost_r, "%s", keeper->lost.text);
	else if (keeper->state == RSB_KEEPER_LIVE)
		r = 0;
	rsb_mutex_unlock(&keeper->lock);
	if (r == -ETIMEDOUT)
		return rsb_diag_set(diag, r, "the sandbox was not reached in time");
	return r;
}

static int
end_sandbox(struct rsb_keeper *keeper, enum rsb_keeper_end end, struct rsb_diag *diag)
{
	struct rsb_backend *backend = keeper->env.backend;
	int r = 0;

	if (end == RSB_KEEPER_END_KILL)
		return rsb_keeper_destroy(&keeper->env, &keeper->saved, diag);
	if (end == RSB_KEEPER_END_PAUSE) {
		/* a stream that is cut by the pause may be kept for alive over there */
		rsb_link_disconnect(keeper->link, -ECANCELED);
		r = backend->ops->pause(backend, keeper->saved.sandbox_id, diag);
		if (r == -EBUSY)
			r = 0;
		if (r == 0)
			rsb_steps_say(keeper, "paused", "the sandbox is paused");
	}
	return r;
}

int
rsb_keeper_stop(struct rsb_keeper *keeper, enum rsb_keeper_end end, struct rsb_diag *diag)
{
	int r;

	rsb_mutex_lock(&keeper->lock);
	keeper->stop = true;
	keeper->state = RSB_KEEPER_STOPPED;
	if (keeper->haul)
		rsb_haul_abort(keeper->haul, -ECANCELED);
	rsb_cond_broadcast(&keeper->cond);
	rsb_mutex_unlock(&keeper->lock);
	rsb_backend_abort(keeper->env.backend);
	(void)pthread_join(keeper->thread, NULL); /* it ends by that order alone */
	rsb_backend_rearm(keeper->env.backend);
	r = end_sandbox(keeper, end, diag);
	rsb_sandbox_done(&keeper->sandbox);
	rsb_keeper_target_done(&keeper->way);
	rsb_cond_done(&keeper->cond);
	rsb_mutex_done(&keeper->lock);
	free(keeper);
	return r;
}
