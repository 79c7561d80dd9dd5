/* SPDX-License-Identifier: MIT */
#include "link/anew.h"

#include <errno.h>

bool
rsb_anew_begins(const struct rsb_link *link, const struct rsb_welcome *welcome)
{
	if (!link->welcomed || !link->saved || !link->ops->anew)
		return false;
	if (welcome->anew && !welcome->resumed)
		return true;
	/* The process before us was killed when it was at it. */
	return welcome->resumed && link->saved->reviving && !link->gated;
}

static void
split(struct rsb_list *calls, struct rsb_list *revive)
{
	struct rsb_list *pos, *tmp;

	rsb_list_init(revive);
	rsb_list_for_each_safe (pos, tmp, calls) {
		if (!rsb_list_entry(pos, struct rsb_pending_call, node)->revives)
			continue;
		rsb_list_remove(pos);
		rsb_list_append(revive, pos);
	}
}

int
rsb_anew_cut(struct rsb_link *link)
{
	struct rsb_session *fresh = NULL;
	struct rsb_list calls, revive;
	struct rsb_map lanes;
	int r;

	r = rsb_talk_new_session(link, &fresh);
	if (r < 0)
		return r;
	rsb_session_free(link->session);
	link->session = fresh;
	link->poisoned = false;
	rsb_list_init(&calls);
	/* One critical section: what is called from here on comes after what is made again. */
	rsb_mutex_lock(&link->lock);
	link->generation++;
	link->gated = true;
	rsb_talk_take_all(link, &calls, &lanes);
	rsb_mutex_unlock(&link->lock);
	split(&calls, &revive);
	rsb_talk_end_list(&revive, -ERESTART);
	rsb_talk_end_list(&calls, -EOWNERDEAD);
	rsb_talk_reset_chans(link, &lanes, -EOWNERDEAD);
	return 0;
}

void
rsb_anew_save(struct rsb_link *link, const struct rsb_welcome *welcome)
{
	if (!welcome->anew)
		return;
	__atomic_store_n(&link->saved->reviving, welcome->fifo + 1, __ATOMIC_RELEASE);
	link->saved->lock_losses = welcome->lock_losses;
}

void
rsb_anew_tell(struct rsb_link *link)
{
	link->ops->anew(link->arg, link->saved->reviving - 1);
}

void
rsb_link_go_on(struct rsb_link *link)
{
	rsb_mutex_lock(&link->lock);
	link->gated = false;
	link->orders.go_on = true;
	rsb_mutex_unlock(&link->lock);
	__atomic_store_n(&link->saved->reviving, (uint64_t)0, __ATOMIC_RELEASE);
	rsb_loop_post(link->loop, &link->wake);
}
