/* SPDX-License-Identifier: MIT */
#ifndef RSB_KEEPER_H
#define RSB_KEEPER_H

/*
 * Keeps one sandbox alive and the link to it up. The first half is plain functions, for verbs
 * in their own process (under the state lock, without a daemon); the second is the daemon's
 * keeper thread, the only one there that talks to the control plane. What to do when is
 * decided in keeper/recover.h; here it is done.
 */

#include "keeper/provision.h"

enum rsb_keeper_state {
	RSB_KEEPER_STARTING, /* not yet live for the first time */
	RSB_KEEPER_LIVE,
	RSB_KEEPER_SUSPECT,
	RSB_KEEPER_RECONNECTING,
	RSB_KEEPER_RESUMING,   /* it was paused */
	RSB_KEEPER_RESTARTING, /* the sidecar was gone */
	RSB_KEEPER_RECREATING, /* it was gone; another one is made of the last snapshot */
	RSB_KEEPER_RESTING,    /* it was idle and is paused; what is done next resumes it */
	RSB_KEEPER_LOST,       /* needs the user; all calls fail with EIO */
	RSB_KEEPER_STOPPED,
};
const char *rsb_keeper_state_name(enum rsb_keeper_state state);

/* Live for so long, or one answer: the outage before is over. */
#define RSB_KEEPER_SETTLE_NS (5 * RSB_NSEC_PER_SEC)

struct rsb_keeper;

struct rsb_keeper_config {
	/* What it points to lives as long as the keeper; the backend is the keeper's alone. */
	struct rsb_keeper_env env;
	const struct rsb_state *state; /* copied */
	struct rsb_link *link;         /* borrowed; lives longer than the keeper */
	/* It is in the event log by then. On the keeper's thread; may be NULL. text: a sentence. */
	void (*event)(void *arg, const char *kind, const char *text);
	/* Another sandbox was made of a snapshot: of which moment. NULL: as an event "restored". */
	void (*restored)(void *arg, const char *text);
	void *arg;
};

/*
 * Starts the thread, which connects the link. The owner of the link passes its state callback
 * on by rsb_keeper_link_state().
 */
rsb_nodiscard int rsb_keeper_start(
	const struct rsb_keeper_config *config, struct rsb_keeper **ret_keeper);
/* {any} As the callback of struct rsb_link_ops. Does not wait. */
void rsb_keeper_link_state(
	struct rsb_keeper *keeper, enum rsb_link_state state, int reason, bool new_epoch);
/*
 * {any} Every second or oftener: the thread may be waiting for the control plane when the time is
 * over that calls wait for the link. May write the event log.
 */
void rsb_keeper_tick(struct rsb_keeper *keeper);
/* {any} */
enum rsb_keeper_state rsb_keeper_state(struct rsb_keeper *keeper);
/*
 * {any} Which sandbox it is now, and where it was reached last, for a link beside the keeper's; the
 * caller ends *ret_target. -ENOTCONN: it is not reached now.
 */
rsb_nodiscard int rsb_keeper_way(struct rsb_keeper *keeper, struct rsb_keeper_target *ret_target,
	char ret_id[static RSB_SANDBOX_ID_MAX + 1]);
/* {any} Another one may be made in its place. */
void rsb_keeper_id(struct rsb_keeper *keeper, char ret_id[static RSB_SANDBOX_ID_MAX + 1]);
/* {any} For how long, awake, the sandbox was not reached; 0: it is live, or was a moment ago. */
uint64_t rsb_keeper_down_ns(struct rsb_keeper *keeper);
/* {any} It is kept alive; false: it is left to its time, or gone. */
bool rsb_keeper_keeps(struct rsb_keeper *keeper);
/* Waits until LIVE (0) or LOST (its errno and sentence). -ETIMEDOUT. */
rsb_nodiscard int rsb_keeper_wait(
	struct rsb_keeper *keeper, uint64_t timeout_ns, struct rsb_diag *diag);

enum rsb_keeper_end { RSB_KEEPER_END_LEAVE, RSB_KEEPER_END_PAUSE, RSB_KEEPER_END_KILL };
/*
 * Ends the thread, then does with the sandbox what end says (KILL removes the state too). Frees
 * keeper in any case: no rsb_keeper_link_state() may be under way or come after, which the owner
 * of the link sees to with a lock of its own.
 */
rsb_nodiscard int rsb_keeper_stop(
	struct rsb_keeper *keeper, enum rsb_keeper_end end, struct rsb_diag *diag);

#endif
