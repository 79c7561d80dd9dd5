/* SPDX-License-Identifier: MIT */
#ifndef RSB_SYNCOUT_H
#define RSB_SYNCOUT_H

/*
 * Brings back what a sandbox made of a directory: what changed only there comes, what changed only
 * here stays, and of what changed on both sides both are kept, theirs beside ours with
 * RSB_SYNC_CONFLICT behind its name. What went there goes here. Everything is staged and verified
 * before the first name changes here, and a failure after that is taken back. Under the state lock.
 */

#include "keeper/sync.h"

/* More deletions than this many and this share of all need delete_many. */
#define RSB_SYNCOUT_DELETES_MAX 20u
#define RSB_SYNCOUT_DELETES_PERCENT 10u

enum rsb_syncout_item {
	RSB_SYNCOUT_COMES,
	RSB_SYNCOUT_GOES,
	RSB_SYNCOUT_CONFLICTS,
	RSB_SYNCOUT_PARTLY, /* comes, but not what why says, by a rule */
	RSB_SYNCOUT_HELD,   /* by a rule, which why says */
	RSB_SYNCOUT_MISSED, /* it should have come and could not, why says so; maybe next time */
	RSB_SYNCOUT_STAYS,  /* changed only here; a sync in brings it there */
	RSB_SYNCOUT_ITEM_N,
};

struct rsb_syncout {
	const struct rsb_sync *sync; /* its directory, patterns and callbacks */
	const char *state_dir;
	const char *name; /* of the sandbox */
	bool dry_run;     /* tell, and change nothing */
	bool delete_many;
	bool trust_git;
	uint64_t max; /* bytes of all files that may come, holes counted; 0: no end */
	/* May be NULL; why: NULL or a sentence. With sync's arg. */
	void (*item)(void *arg, enum rsb_syncout_item item, const char *path, const char *why);
	/*
	 * May be NULL. Before the first name changes here, with done 0, and after each of all: who
	 * is stopped from then on leaves half. With sync's arg.
	 */
	void (*publishes)(void *arg, uint64_t done, uint64_t all);
};

struct rsb_syncout_stats {
	uint64_t items[RSB_SYNCOUT_ITEM_N];
	uint64_t packed; /* bytes that came */
};

/*
 * Over a link of its own, made and ended here. What is told of by item has been done, or with
 * dry_run would be. On failure the directory is as it was.
 */
rsb_nodiscard int rsb_sync_out(const struct rsb_syncout *out, const struct rsb_sync_far *far,
	struct rsb_syncout_stats *ret_stats, struct rsb_diag *diag);

#endif
