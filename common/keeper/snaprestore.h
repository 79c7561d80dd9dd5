/* SPDX-License-Identifier: MIT */
#ifndef RSB_SNAPRESTORE_H
#define RSB_SNAPRESTORE_H

/*
 * Brings a snapshot back, into the workspace of a sandbox in which nothing was done yet: its chain
 * from the base on, then the list of what is there is compared with what it should be.
 */

#include "keeper/haul.h"
#include "keeper/snapstore.h"

/*
 * The digests of all that i stands on are right, so that nothing is begun that could not be
 * finished. -EBADMSG with a sentence.
 */
rsb_nodiscard int rsb_snaprestore_check(
	const struct rsb_snapstore *store, size_t i, struct rsb_diag *diag);
/*
 * The newest of which that is so. told (may be NULL) hears of each newer one what is wrong with it.
 * -ENOENT: there is none, with a sentence.
 */
rsb_nodiscard int rsb_snaprestore_newest(const struct rsb_snapstore *store,
	void (*told)(void *arg, const char *text), void *arg, struct rsb_diag *diag);

struct rsb_snaprestore {
	const struct rsb_snapstore *store;
	size_t at;                 /* which was checked */
	struct rsb_bytes patterns; /* what snapshots leave out, and so stays as it is there */
	/* May be NULL. bytes: sent so far; text: what is not quite as it was, one sentence. */
	void (*progress)(void *arg, uint64_t bytes);
	void (*notice)(void *arg, const char *text);
	void *arg;
};

/*
 * haul: connected, without a call under way. *ret_files: names that are back. -EBADMSG with a
 * sentence: what is there afterwards is something else.
 */
rsb_nodiscard int rsb_snaprestore_run(const struct rsb_snaprestore *restore, struct rsb_haul *haul,
	uint64_t *ret_files, struct rsb_diag *diag);

#endif
