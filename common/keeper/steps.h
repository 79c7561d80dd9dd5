/* SPDX-License-Identifier: MIT */
#ifndef RSB_STEPS_H
#define RSB_STEPS_H

/*
 * What the keeper thread does when the table of keeper/recover.h says so. Private to the keeper.
 */

#include "keeper/life.h"
#include "keeper/recover.h"
#include "util/awake.h"
#include "util/thread.h"

struct rsb_keeper {
	struct rsb_keeper_env env; /* const after start */
	struct rsb_state saved;    /* {keeper} writes it under lock */
	struct rsb_link *link;     /* const after start */
	void (*event)(void *arg, const char *kind, const char *text); /* const after start */
	void (*restored)(void *arg, const char *text);                /* const after start */
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
	struct rsb_awake awake;         /* {lock} */
	uint64_t down_ns;               /* {lock} awake, since when; 0: live and settled */
	bool failing;                   /* {lock} calls end at once */
	bool beating;                   /* {lock} a heartbeat waits for the control plane */
	uint64_t n_reply;               /* {lock} that the link had when it became live */
	struct rsb_keeper_target way;   /* {lock} of the latest attempt */
	struct rsb_haul *haul;          /* {lock} by which a snapshot comes back; NULL: none */
	int lost_r;                     /* {lock} with state LOST */
	struct rsb_diag lost;           /* {lock} */

	struct rsb_sandbox sandbox; /* {keeper} what the control plane said last */
	unsigned int attempts;      /* {keeper} failed in a row */
	bool refused;               /* {keeper} the last of them */
	unsigned int n_wait;        /* {keeper} back-offs in a row */
	uint64_t timer_ns;          /* {keeper} 0: none */
	uint64_t heartbeat_ns;      /* {keeper} the next one */
	uint64_t live_ns;           /* {keeper} since when; 0: not live */
	bool settled;               /* {keeper} it was live long enough for the outage to be over */
	struct rsb_life life;       /* {keeper} */
	bool said_idle;             /* {lock}, written by {keeper} */
	unsigned int n_recreate;    /* {keeper} attempts in a row to make it anew */
	uint64_t retry_after_ns;    /* {keeper} at least so long, the control plane says */
	struct rsb_diag why;        /* {keeper} of the latest failure */
};

/* Every call ends from now on, until it is taken back. */
void rsb_steps_fail_calls(struct rsb_keeper *keeper);
/* Into the event log and to the owner. */
void rsb_steps_say(struct rsb_keeper *keeper, const char *kind, const char *text);
/* Does action, which cause led to. What came of it; RSB_RECOVER_EVENT_N: that shows later. */
enum rsb_recover_event rsb_steps_act(
	struct rsb_keeper *keeper, enum rsb_recover_action action, enum rsb_recover_event cause);

#endif
