/* SPDX-License-Identifier: MIT */
#include "keeper/keeper.h"

#include <errno.h>
#include <string.h>

#include "keeper/recover.h"
#include "util/backoff.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/thread.h"

#define RSB_LOG_MODULE "keeper"
#include "util/log.h"

#define BACKOFF_BASE_NS (250 * RSB_NSEC_PER_MSEC)
#define BACKOFF_MAX_NS (10 * RSB_NSEC_PER_SEC)

struct rsb_keeper {
	struct rsb_keeper_env env;                                    /* const after start */
	struct rsb_state saved;                                       /* const after start */
	struct rsb_link *link;                                        /* const after start */
	void (*event)(void *arg, const char *kind, const char *text); /* const after start */
	void *arg;                                                    /* const after start */
	pthread_t thread;                                             /* const after start */

	struct rsb_mutex lock;
	struct rsb_cond cond;
	enum rsb_keeper_state state;    /* {lock} */
	enum rsb_link_state link_state; /* {lock} the latest that was not looked at */
	int link_reason;                /* {lock} */
	bool link_changed;              /* {lock} */
	bool new_epoch;                 /* {lock} */
	bool stop;                      /* {lock} */
	int lost_r;                     /* {lock} with state LOST */
	struct rsb_diag lost;           /* {lock} */

	struct rsb_sandbox sandbox; /* {keeper} what the control plane said last */
	unsigned int attempts;      /* {keeper} failed in a row */
	bool refused;               /* {keeper} the last of them */
	unsigned int n_wait;        /* {keeper} back-offs in a row */
	uint64_t timer_ns;          /* {keeper} 0: none */
	uint64_t heartbeat_ns;      /* {keeper} the next one */
	uint64_t down_ns;           /* {keeper} since when; 0: live */
	uint64_t retry_after_ns;    /* {keeper} at least so long, the control plane says */
	bool failing;               /* {keeper} calls end at once */
	struct rsb_diag why;        /* {keeper} of the latest failure */
};

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
		[RSB_KEEPER_LOST] = "lost",
		[RSB_KEEPER_STOPPED] = "stopped",
	};

	return names[state];
}

static void
say(struct rsb_keeper *keeper, const char *kind, const char *text)
{
	rsb_state_event(keeper->env.dir, kind, text);
	if (keeper->event)
		keeper->event(keeper->arg, kind, text);
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

/* ---- actions; each says what came of it ---- */

static enum rsb_recover_event
act_connect(struct rsb_keeper *keeper)
{
	RSB_CLEANUP(rsb_keeper_target_done) struct rsb_keeper_target target = { 0 };
	int r;

	r = rsb_keeper_target(&keeper->env, &keeper->saved, &keeper->sandbox, &target);
	if (r == 0)
		r = rsb_link_connect(keeper->link, &target.target);
	if (r == 0 || r == -EALREADY)
		return RSB_RECOVER_EVENT_N; /* the link will say */
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
	if (sandbox.state == RSB_SANDBOX_PAUSED)
		return RSB_RECOVER_IS_PAUSED;
	return keeper->refused ? RSB_RECOVER_IS_BARE : RSB_RECOVER_IS_RUNNING;
}

static enum rsb_recover_event
act_resume(struct rsb_keeper *keeper)
{
	struct rsb_sandbox sandbox;
	int r;

	say(keeper, "resuming", "the sandbox was paused; it is being resumed");
	r = rsb_keeper_resume(&keeper->env, &keeper->saved, &sandbox, &keeper->why);
	if (r == -ENOENT)
		return RSB_RECOVER_IS_GONE;
	if (r == -EACCES)
		return RSB_RECOVER_IS_FORBIDDEN;
	if (r < 0)
		return RSB_RECOVER_FAILED;
	rsb_sandbox_done(&keeper->sandbox);
	keeper->sandbox = sandbox;
	keeper->attempts = 0;
	keeper->refused = false;
	return RSB_RECOVER_DONE;
}

static enum rsb_recover_event
act_deploy(struct rsb_keeper *keeper)
{
	int r;

	say(keeper, "restarting", "the sandbox runs without its sidecar; it is being started anew");
	r = rsb_keeper_deploy(&keeper->env, &keeper->saved, &keeper->sandbox, &keeper->why);
	if (r < 0) {
		say(keeper, "failed", rsb_diag_text(&keeper->why, r));
		return RSB_RECOVER_FAILED;
	}
	keeper->attempts = 0;
	keeper->refused = false;
	return RSB_RECOVER_DONE;
}

static enum rsb_recover_event
act_give_up(struct rsb_keeper *keeper, enum rsb_recover_event cause)
{
	int r = cause == RSB_RECOVER_IS_GONE ? -ENOENT : -EACCES;
	struct rsb_diag text = { 0 };

	if (cause == RSB_RECOVER_IS_GONE)
		(void)rsb_diag_set(&text, r, "the sandbox %s does not exist any more",
			keeper->saved.sandbox_id);
	else
		(void)rsb_diag_set(&text, r, "the control plane refuses the API key");
	say(keeper, "lost", text.text);
	rsb_link_fail(keeper->link, -EIO);
	keeper->failing = true;
	keeper->timer_ns = 0;
	rsb_mutex_lock(&keeper->lock);
	keeper->lost_r = r;
	keeper->lost = text;
	rsb_mutex_unlock(&keeper->lock);
	return RSB_RECOVER_EVENT_N;
}

static enum rsb_recover_event
act(struct rsb_keeper *keeper, enum rsb_recover_action action, enum rsb_recover_event cause)
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
	case RSB_RECOVER_RESUME:
		return act_resume(keeper);
	case RSB_RECOVER_DEPLOY:
		return act_deploy(keeper);
	case RSB_RECOVER_GIVE_UP:
		return act_give_up(keeper, cause);
	}
	return RSB_RECOVER_EVENT_N;
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
		event = act(keeper, step.action, event);
		if (step.action == RSB_RECOVER_GIVE_UP)
			set_state(keeper, step.state);
	}
}

static void
link_is_live(struct rsb_keeper *keeper)
{
	if (keeper->failing)
		rsb_link_fail(keeper->link, 0);
	if (rsb_keeper_state(keeper) != RSB_KEEPER_LIVE && keeper->down_ns)
		say(keeper, "live", "the sandbox is connected");
	keeper->failing = false;
	keeper->attempts = 0;
	keeper->n_wait = 0;
	keeper->refused = false;
	keeper->timer_ns = 0;
	keeper->down_ns = 0;
	handle(keeper, RSB_RECOVER_LINK_LIVE);
}

static void
link_is_down(struct rsb_keeper *keeper, int reason)
{
	enum rsb_recover_event event;
	struct rsb_diag why;

	rsb_link_why(keeper->link, &why);
	if (keeper->down_ns == 0) {
		keeper->down_ns = rsb_now_ns();
		say(keeper, "down", rsb_diag_text(&why, reason));
	} else {
		keeper->attempts++;
	}
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
		say(keeper, "epoch",
			"the sidecar lost its memory: open files and commands of before are gone");
	if (!changed)
		return;
	if (state == RSB_LINK_LIVE)
		link_is_live(keeper);
	else if (state == RSB_LINK_SUSPECT)
		handle(keeper, RSB_RECOVER_LINK_SUSPECT);
	else if (state == RSB_LINK_DOWN)
		link_is_down(keeper, reason);
}

static void
heartbeat(struct rsb_keeper *keeper)
{
	struct rsb_backend *backend = keeper->env.backend;
	int r;

	keeper->heartbeat_ns = rsb_now_ns() + keeper->env.config->keeper.heartbeat_ns;
	if (rsb_keeper_state(keeper) != RSB_KEEPER_LIVE)
		return;
	r = backend->ops->extend(backend, keeper->saved.sandbox_id, keeper->saved.ttl_ns, NULL);
	/* whether it is gone, the link knows first */
	if (r < 0)
		rsb_dbg_r(r, "heartbeat");
}

/* After recover_wait nobody is kept waiting any more; the search goes on. */
static void
check_patience(struct rsb_keeper *keeper, uint64_t now_ns)
{
	if (keeper->failing || keeper->down_ns == 0 ||
		now_ns - keeper->down_ns < keeper->env.config->keeper.recover_wait_ns)
		return;
	keeper->failing = true;
	rsb_link_fail(keeper->link, -EIO);
	say(keeper, "failing", "the sandbox was not reached in time: calls fail until it is");
}

static uint64_t
earliest(const struct rsb_keeper *keeper)
{
	uint64_t deadline_ns = keeper->heartbeat_ns;

	if (keeper->timer_ns)
		deadline_ns = rsb_min(deadline_ns, keeper->timer_ns);
	if (keeper->down_ns && !keeper->failing)
		deadline_ns = rsb_min(
			deadline_ns, keeper->down_ns + keeper->env.config->keeper.recover_wait_ns);
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
		now_ns = rsb_now_ns();
		if (keeper->timer_ns && now_ns >= keeper->timer_ns) {
			keeper->timer_ns = 0;
			handle(keeper, RSB_RECOVER_TIMER);
		}
		if (now_ns >= keeper->heartbeat_ns)
			heartbeat(keeper);
		check_patience(keeper, now_ns);
	}
}

/* ---- from outside ---- */

int
rsb_keeper_start(const struct rsb_keeper_config *config, struct rsb_keeper **ret_keeper)
{
	struct rsb_keeper *keeper = rsb_new(struct rsb_keeper);
	uint64_t now_ns = rsb_now_ns();
	int r;

	if (!keeper)
		return -ENOMEM;
	keeper->env = config->env;
	keeper->saved = *config->state;
	keeper->link = config->link;
	keeper->event = config->event;
	keeper->arg = config->arg;
	keeper->state = RSB_KEEPER_STARTING;
	keeper->down_ns = now_ns;
	keeper->heartbeat_ns = now_ns + config->env.config->keeper.heartbeat_ns;
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
	rsb_mutex_lock(&keeper->lock);
	keeper->new_epoch |= new_epoch;
	/* our own attempts and our own verdict are no news */
	if (state != RSB_LINK_CONNECTING && state != RSB_LINK_FAILED) {
		keeper->link_state = state;
		keeper->link_reason = reason;
		keeper->link_changed = true;
	}
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
			say(keeper, "paused", "the sandbox is paused");
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
	rsb_cond_broadcast(&keeper->cond);
	rsb_mutex_unlock(&keeper->lock);
	rsb_backend_abort(keeper->env.backend);
	(void)pthread_join(keeper->thread, NULL); /* it ends by that order alone */
	rsb_backend_rearm(keeper->env.backend);
	r = end_sandbox(keeper, end, diag);
	rsb_sandbox_done(&keeper->sandbox);
	rsb_cond_done(&keeper->cond);
	rsb_mutex_done(&keeper->lock);
	free(keeper);
	return r;
}
