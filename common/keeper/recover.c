/* SPDX-License-Identifier: MIT */
#include "keeper/recover.h"

#include <errno.h>

/* The states in which the link is being brought up. */
static struct rsb_recover_step
bring_up(enum rsb_keeper_state state, enum rsb_recover_event event, unsigned int attempts)
{
	bool ask = attempts >= RSB_RECOVER_ATTEMPTS;

	switch (event) {
	case RSB_RECOVER_LINK_LIVE:
		return (struct rsb_recover_step){ RSB_KEEPER_LIVE, RSB_RECOVER_NOTHING };
	case RSB_RECOVER_LINK_SUSPECT:
		break;
	case RSB_RECOVER_LINK_DOWN:
	case RSB_RECOVER_LINK_REFUSED:
		return (struct rsb_recover_step){ state, ask ? RSB_RECOVER_ASK : RSB_RECOVER_WAIT };
	case RSB_RECOVER_TIMER:
	case RSB_RECOVER_DONE:
		return (struct rsb_recover_step){ state, RSB_RECOVER_CONNECT };
	case RSB_RECOVER_BEGIN:
		return (struct rsb_recover_step){ state, RSB_RECOVER_ASK };
	case RSB_RECOVER_IS_RUNNING:
		/* asked at the beginning: there was no attempt yet */
		if (attempts == 0)
			return (struct rsb_recover_step){ state, RSB_RECOVER_CONNECT };
		return (struct rsb_recover_step){ state, RSB_RECOVER_WAIT };
	case RSB_RECOVER_IS_BARE:
		return (struct rsb_recover_step){ RSB_KEEPER_RESTARTING, RSB_RECOVER_DEPLOY };
	case RSB_RECOVER_IS_PAUSED:
		return (struct rsb_recover_step){ RSB_KEEPER_RESUMING, RSB_RECOVER_RESUME };
	case RSB_RECOVER_IS_RESTING:
		return (struct rsb_recover_step){ RSB_KEEPER_RESTING, RSB_RECOVER_REST };
	case RSB_RECOVER_IS_GONE:
		return (struct rsb_recover_step){ RSB_KEEPER_RECREATING, RSB_RECOVER_RECREATE };
	case RSB_RECOVER_HOPELESS:
	case RSB_RECOVER_IS_FORBIDDEN:
		return (struct rsb_recover_step){ RSB_KEEPER_LOST, RSB_RECOVER_GIVE_UP };
	case RSB_RECOVER_IS_UNCLEAR:
	case RSB_RECOVER_FAILED:
		return (struct rsb_recover_step){ state, RSB_RECOVER_WAIT };
	case RSB_RECOVER_USED:
	case RSB_RECOVER_CAP:
	case RSB_RECOVER_EVENT_N:
		break;
	}
	return (struct rsb_recover_step){ state, RSB_RECOVER_NOTHING };
}

/* There is nothing to connect to until it was made, or turns out to be there. */
static struct rsb_recover_step
recreating(enum rsb_recover_event event)
{
	const struct rsb_recover_step stay = { RSB_KEEPER_RECREATING, RSB_RECOVER_NOTHING };

	switch (event) {
	case RSB_RECOVER_LINK_SUSPECT:
	case RSB_RECOVER_LINK_DOWN:
	case RSB_RECOVER_LINK_REFUSED:
	case RSB_RECOVER_USED:
	case RSB_RECOVER_CAP:
	case RSB_RECOVER_EVENT_N:
		return stay;
	case RSB_RECOVER_TIMER:
		return (struct rsb_recover_step){ stay.state, RSB_RECOVER_ASK };
	case RSB_RECOVER_IS_UNCLEAR:
	case RSB_RECOVER_FAILED:
		return (struct rsb_recover_step){ stay.state, RSB_RECOVER_WAIT };
	case RSB_RECOVER_BEGIN:
	case RSB_RECOVER_LINK_LIVE:
	case RSB_RECOVER_IS_RUNNING:
	case RSB_RECOVER_IS_BARE:
	case RSB_RECOVER_IS_PAUSED:
	case RSB_RECOVER_IS_RESTING:
	case RSB_RECOVER_IS_GONE:
	case RSB_RECOVER_HOPELESS:
	case RSB_RECOVER_IS_FORBIDDEN:
	case RSB_RECOVER_DONE:
		break;
	}
	return bring_up(RSB_KEEPER_RECONNECTING, event, 0);
}

/*
 * What the control plane says of a sandbox that answers us does not matter. A link that breaks
 * again and again without having been of use is no better than one that does not come up.
 */
static struct rsb_recover_step
live(enum rsb_keeper_state state, enum rsb_recover_event event, unsigned int attempts)
{
	switch (event) {
	case RSB_RECOVER_LINK_LIVE:
		return (struct rsb_recover_step){ RSB_KEEPER_LIVE, RSB_RECOVER_NOTHING };
	case RSB_RECOVER_LINK_SUSPECT:
		return (struct rsb_recover_step){ RSB_KEEPER_SUSPECT, RSB_RECOVER_NOTHING };
	case RSB_RECOVER_LINK_DOWN:
	case RSB_RECOVER_LINK_REFUSED:
		return (struct rsb_recover_step){ RSB_KEEPER_RECONNECTING,
			attempts ? RSB_RECOVER_WAIT : RSB_RECOVER_CONNECT };
	case RSB_RECOVER_CAP:
		return (struct rsb_recover_step){ RSB_KEEPER_RESUMING, RSB_RECOVER_PAUSE };
	case RSB_RECOVER_BEGIN:
	case RSB_RECOVER_TIMER:
	case RSB_RECOVER_IS_RUNNING:
	case RSB_RECOVER_IS_BARE:
	case RSB_RECOVER_IS_PAUSED:
	case RSB_RECOVER_IS_RESTING:
	case RSB_RECOVER_USED:
	case RSB_RECOVER_IS_GONE:
	case RSB_RECOVER_HOPELESS:
	case RSB_RECOVER_IS_FORBIDDEN:
	case RSB_RECOVER_IS_UNCLEAR:
	case RSB_RECOVER_DONE:
	case RSB_RECOVER_FAILED:
	case RSB_RECOVER_EVENT_N:
		break;
	}
	return (struct rsb_recover_step){ state, RSB_RECOVER_NOTHING };
}

struct rsb_recover_step
rsb_recover_next(enum rsb_keeper_state state, enum rsb_recover_event event, unsigned int attempts)
{
	switch (state) {
	case RSB_KEEPER_LIVE:
	case RSB_KEEPER_SUSPECT:
		return live(state, event, attempts);
	case RSB_KEEPER_STARTING:
	case RSB_KEEPER_RECONNECTING:
	case RSB_KEEPER_RESUMING:
	case RSB_KEEPER_RESTARTING:
		return bring_up(state, event, attempts);
	case RSB_KEEPER_RECREATING:
		return recreating(event);
	case RSB_KEEPER_RESTING:
		if (event == RSB_RECOVER_USED)
			return (struct rsb_recover_step){ RSB_KEEPER_RESUMING, RSB_RECOVER_ASK };
		break;
	case RSB_KEEPER_LOST:
	case RSB_KEEPER_STOPPED:
		break;
	}
	return (struct rsb_recover_step){ state, RSB_RECOVER_NOTHING };
}

enum rsb_recover_event
rsb_recover_link_event(int reason)
{
	switch (-reason) {
	case ECONNREFUSED:
	case EACCES:
	case EPROTO:
	case EPROTONOSUPPORT:
		return RSB_RECOVER_LINK_REFUSED;
	default:
		return RSB_RECOVER_LINK_DOWN;
	}
}
