/* SPDX-License-Identifier: MIT */
#include "keeper/life.h"

/* Less than was asked for by so much is a limit: clocks are compared by whole seconds. */
#define SLACK_NS (3 * RSB_NSEC_PER_SEC)

void
rsb_life_init(struct rsb_life *life, uint64_t idle_limit_ns, uint64_t now_ns)
{
	*life = (struct rsb_life){ .idle_limit_ns = idle_limit_ns, .used_ns = now_ns };
}

void
rsb_life_use(struct rsb_life *life, uint64_t n_call, uint64_t n_wait, uint64_t now_ns)
{
	life->in_use = n_wait > 0;
	if (life->in_use || n_call != life->n_call)
		life->used_ns = now_ns;
	life->n_call = n_call;
}

bool
rsb_life_is_idle(const struct rsb_life *life, uint64_t now_ns)
{
	return life->idle_limit_ns && now_ns - life->used_ns >= life->idle_limit_ns;
}

enum rsb_life_act
rsb_life_look(struct rsb_life *life, const struct rsb_life_got *got)
{
	uint64_t ahead_ns = rsb_min(RSB_LIFE_AHEAD_NS, got->session_ns / RSB_LIFE_AHEAD_PART);
	bool warned = life->warned;

	life->warned = false;
	if (got->left_ns + SLACK_NS >= got->wanted_ns || got->left_ns > ahead_ns)
		return RSB_LIFE_GOES_ON;
	if (!life->in_use)
		return RSB_LIFE_RENEW;
	life->warned = true;
	return warned ? RSB_LIFE_GOES_ON : RSB_LIFE_WARN;
}
