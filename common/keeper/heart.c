/* SPDX-License-Identifier: MIT */
#include "keeper/heart.h"

#include "util/clock.h"
#include "util/localtime.h"

#define RSB_LOG_MODULE "keeper"
#include "util/log.h"

#define BEAT_MIN_NS (RSB_NSEC_PER_SEC / 3)

/* Two may be lost before the sandbox ends. */
uint64_t
rsb_heart_next(const struct rsb_keeper *keeper, uint64_t left_ns)
{
	uint64_t beat_ns = rsb_max(rsb_min(keeper->saved.ttl_ns, left_ns) / 3, BEAT_MIN_NS);

	return rsb_now_ns() + rsb_min(beat_ns, keeper->env.config->keeper.heartbeat_ns);
}

bool
rsb_heart_is_idle(struct rsb_keeper *keeper)
{
	const uint64_t now_ns = rsb_now_ns();
	struct rsb_link_stats stats;
	bool is_idle;

	rsb_link_stats(keeper->link, &stats);
	rsb_life_use(&keeper->life, stats.calls, stats.waiting, now_ns);
	is_idle = rsb_life_is_idle(&keeper->life, now_ns);
	if (is_idle && !keeper->said_idle)
		rsb_steps_say(keeper, "idle",
			"the sandbox was not used for keeper.idle_limit: it is left to its time");
	rsb_mutex_lock(&keeper->lock);
	keeper->said_idle = is_idle;
	rsb_mutex_unlock(&keeper->lock);
	return is_idle;
}

static void
warn(struct rsb_keeper *keeper)
{
	char until[RSB_LOCALTIME_SIZE];
	struct rsb_diag text;

	rsb_localtime(rsb_wall_ns() + keeper->sandbox.left_ns, rsb_wall_ns(), until);
	(void)rsb_diag_set(&text, 0,
		"the sandbox's host ends its time at %s, whatever is asked: it is paused and resumed, which "
		"begins its time anew, as soon as nothing runs in it",
		until);
	rsb_steps_say(keeper, "limit", text.text);
}

/* A host may have a limit of its own. */
static enum rsb_recover_event
read_back(struct rsb_keeper *keeper)
{
	struct rsb_backend *backend = keeper->env.backend;
	struct rsb_life_got got = { .wanted_ns = keeper->saved.ttl_ns };
	struct rsb_sandbox sandbox;
	enum rsb_life_act act;

	if (backend->ops->get(backend, keeper->saved.sandbox_id, &sandbox, NULL) < 0)
		return RSB_RECOVER_EVENT_N;
	rsb_sandbox_done(&keeper->sandbox);
	keeper->sandbox = sandbox;
	if (sandbox.state != RSB_SANDBOX_RUNNING || sandbox.end_ns <= sandbox.started_ns)
		return RSB_RECOVER_EVENT_N;
	got.left_ns = sandbox.left_ns;
	got.session_ns = sandbox.end_ns - sandbox.started_ns;
	keeper->heartbeat_ns = rsb_heart_next(keeper, got.left_ns);
	act = rsb_life_look(&keeper->life, &got);
	if (act == RSB_LIFE_WARN)
		warn(keeper);
	return act == RSB_LIFE_RENEW ? RSB_RECOVER_CAP : RSB_RECOVER_EVENT_N;
}

enum rsb_recover_event
rsb_heart_beat(struct rsb_keeper *keeper)
{
	struct rsb_backend *backend = keeper->env.backend;
	enum rsb_recover_event event = RSB_RECOVER_EVENT_N;
	bool beats;
	int r;

	keeper->heartbeat_ns = rsb_heart_next(keeper, UINT64_MAX);
	if (rsb_heart_is_idle(keeper))
		return event;
	rsb_mutex_lock(&keeper->lock);
	keeper->beating = keeper->state == RSB_KEEPER_LIVE && !keeper->link_changed;
	beats = keeper->beating;
	rsb_mutex_unlock(&keeper->lock);
	if (!beats) {
		keeper->heartbeat_ns = rsb_now_ns() + BEAT_MIN_NS; /* as soon as it is live */
		return event;
	}
	r = backend->ops->extend(backend, keeper->saved.sandbox_id, keeper->saved.ttl_ns, NULL);
	if (r == 0)
		event = read_back(keeper);
	rsb_mutex_lock(&keeper->lock);
	keeper->beating = false;
	if (!keeper->stop)
		rsb_backend_rearm(backend);
	rsb_mutex_unlock(&keeper->lock);
	/* whether it is gone, the link knows first */
	if (r < 0)
		rsb_dbg_r(r, "heartbeat");
	return event;
}
