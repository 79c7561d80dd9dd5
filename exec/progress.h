/* SPDX-License-Identifier: MIT */
#ifndef RSB_PROGRESS_H
#define RSB_PROGRESS_H

/*
 * What takes long, as it goes, on stderr: on a terminal one line, at most ten times a second,
 * erased at the end; with -v a line at the beginning and one at the end, wherever stderr leads to.
 * Else nothing, since what is no terminal is a log or a program.
 */

#include "exec/verbs.h"
#include "keeper/sync.h"

struct rsb_progress {
	const struct rsb_verb *verb;
	const char *what;
	uint64_t begun_ns;
	uint64_t last_ns;
	struct rsb_sync_stats stats; /* as last told */
	bool on;
	bool verbose;
	bool shown;
};

/* what: "syncing in". */
void rsb_progress_begin(struct rsb_progress *progress, const struct rsb_verb *verb,
	const struct rsb_verb_common *common, const char *what);
/* As the progress callback of struct rsb_sync; arg is the struct rsb_progress. */
void rsb_progress_sync(void *arg, const struct rsb_sync_stats *stats);
/* Makes room for a line of somebody else's. */
void rsb_progress_clear(struct rsb_progress *progress);
/* r: how it ended. */
void rsb_progress_end(struct rsb_progress *progress, int r);

/* "1.5 MiB"; out has 16 bytes. */
#define RSB_PROGRESS_SIZE 16
void rsb_progress_bytes(uint64_t bytes, char out[static RSB_PROGRESS_SIZE]);

#endif
