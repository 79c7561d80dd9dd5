/* SPDX-License-Identifier: MIT */
#ifndef RSB_SYNCGUARD_H
#define RSB_SYNCGUARD_H

/*
 * A sync that SIGINT, SIGTERM and SIGHUP end at any point until names change here, and from then on
 * no more: it would leave half. The work is done in a child, see exec/interrupt.h, so that whatever
 * it waits for needs not to look for signals, and the parent clears away what it staged.
 */

#include <signal.h>
#include <stdint.h>

#include "exec/verbs.h"

struct rsb_syncguard_seen;

/* Zeroed, then the first group is filled. All is borrowed. */
struct rsb_syncguard {
	const struct rsb_verb *verb;
	const char *name; /* of the sandbox */
	const char *dir;  /* that belongs to it; may be "" */
	bool ends;        /* the sandbox is brought down, of which the sync is a part */
	bool in;          /* a sync in: there, something may have changed */

	struct rsb_syncguard_seen *seen; /* by both processes */
	sigset_t held;
	sigset_t old;
	bool holds;
	bool said;
	int signal; /* the first that came while they were held; 0: none */
};

/*
 * 0: in the child, which goes on. 1: in the parent, when it has ended: *ret_status is to be exited
 * with. When a signal has ended it, that is told, and the parent ends by the same. Before there are
 * threads.
 */
rsb_nodiscard int rsb_syncguard_begin(struct rsb_syncguard *guard, int *ret_status);

/* ---- for the child ---- */

/*
 * As publishes of keeper/syncout.h; from the first call on signals are held back. Whether one has
 * come, which is told once.
 */
rsb_nodiscard bool rsb_syncguard_publishes(
	struct rsb_syncguard *guard, uint64_t done, uint64_t all);
/* That is over, and signals end us again. Returns the first that came meanwhile, or 0. */
int rsb_syncguard_release(struct rsb_syncguard *guard);
/* A command syncs, of which nobody knows what it has changed. */
void rsb_syncguard_by_command(struct rsb_syncguard *guard);
/* Becomes true when a paused sandbox is made to run, which the parent tells of. */
bool *rsb_syncguard_woken(struct rsb_syncguard *guard);
/* ends: the sandbox begins to go. */
void rsb_syncguard_past(struct rsb_syncguard *guard);

#endif
