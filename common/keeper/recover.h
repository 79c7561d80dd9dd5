/* SPDX-License-Identifier: MIT */
#ifndef RSB_RECOVER_H
#define RSB_RECOVER_H

/*
 * What the keeper does next: a pure table of state and event. A living or paused sandbox is
 * always preferred, another one is only made of one that is gone; "gone" takes the control plane's
 * 404; an unclear answer is never taken for either. A sidecar is only started anew when the sandbox
 * is known to run and nothing of ours answers there.
 */

#include "keeper/keeper.h"

enum rsb_recover_event {
	RSB_RECOVER_BEGIN,        /* the keeper starts */
	RSB_RECOVER_LINK_LIVE,    /* the link is up */
	RSB_RECOVER_LINK_SUSPECT, /* no frame for some intervals */
	RSB_RECOVER_LINK_DOWN, /* it broke, or an attempt failed as a passing fault may make it */
	RSB_RECOVER_LINK_REFUSED, /* not our sidecar answers there, or nothing listens */
	RSB_RECOVER_TIMER,        /* the back-off passed */
	RSB_RECOVER_IS_RUNNING, /* answers of the control plane; the link was not refused before */
	RSB_RECOVER_IS_BARE,    /* it runs, and the link was refused */
	RSB_RECOVER_IS_PAUSED,
	RSB_RECOVER_IS_RESTING, /* paused, and nobody has used it for keeper.idle_limit */
	RSB_RECOVER_IS_GONE,
	RSB_RECOVER_HOPELESS, /* gone, and there is nothing to make it anew of */
	RSB_RECOVER_IS_FORBIDDEN,
	RSB_RECOVER_IS_UNCLEAR,
	RSB_RECOVER_USED,   /* while it rests */
	RSB_RECOVER_CAP,    /* its host will end it soon, and nobody uses it */
	RSB_RECOVER_DONE,   /* the action under way worked */
	RSB_RECOVER_FAILED, /* it did not, and may next time */
	RSB_RECOVER_EVENT_N,
};

enum rsb_recover_action {
	RSB_RECOVER_NOTHING,
	RSB_RECOVER_CONNECT, /* one attempt of the link */
	RSB_RECOVER_WAIT,    /* the back-off, then TIMER */
	RSB_RECOVER_ASK,     /* the control plane about the sandbox */
	RSB_RECOVER_PAUSE,   /* so that its host's limit begins anew */
	RSB_RECOVER_RESUME,
	RSB_RECOVER_REST, /* nothing, until it is used */
	RSB_RECOVER_DEPLOY,
	RSB_RECOVER_RECREATE, /* another sandbox, of the last snapshot */
	RSB_RECOVER_GIVE_UP,  /* the sandbox is gone or barred: every call fails */
};

struct rsb_recover_step {
	enum rsb_keeper_state state;
	enum rsb_recover_action action;
};

/* Attempts of the link that fail in a row before the control plane is asked. */
#define RSB_RECOVER_ATTEMPTS 2

/* attempts: failed ones in a row, this one included, and links that broke before they settled. */
struct rsb_recover_step rsb_recover_next(
	enum rsb_keeper_state state, enum rsb_recover_event event, unsigned int attempts);

/* LINK_DOWN or LINK_REFUSED, by the errno of a link that went down. */
enum rsb_recover_event rsb_recover_link_event(int reason);

#endif
