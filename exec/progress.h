/* SPDX-License-Identifier: MIT */
#ifndef RSB_PROGRESS_H
#define RSB_PROGRESS_H

/* One line on a terminal, at most ten times a second, erased at the end; nothing elsewhere. */

#include "keeper/sync.h"

struct rsb_progress {
	const char *what;
	uint64_t last_ns;
	bool on;
	bool shown;
};

/* fd: stderr; off when it is no terminal or quiet. */
void rsb_progress_init(struct rsb_progress *progress, const char *what, bool quiet);
/* As the progress callback of struct rsb_sync; arg is the struct rsb_progress. */
void rsb_progress_sync(void *arg, const struct rsb_sync_stats *stats);
void rsb_progress_done(struct rsb_progress *progress);

/* "1.5 MiB"; out has 16 bytes. */
#define RSB_PROGRESS_SIZE 16
void rsb_progress_bytes(uint64_t bytes, char out[static RSB_PROGRESS_SIZE]);

#endif
