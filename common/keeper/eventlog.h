/* SPDX-License-Identifier: MIT */
#ifndef RSB_EVENTLOG_H
#define RSB_EVENTLOG_H

/*
 * Reads the event log of a sandbox, which rsb_state_event() writes: from its oldest line on, over
 * the change to a new file when one is full, and as it grows. Lines that are damaged are skipped.
 * One thread.
 */

#include "util/cleanup.h"
#include "util/json.h"

struct rsb_eventlog;

/* state_dir: rsb_state_path(). It need not have events yet. Errors of inotify(7) and open(2). */
rsb_nodiscard int rsb_eventlog_open(const char *state_dir, struct rsb_eventlog **ret_log);
/* NULL is fine. */
void rsb_eventlog_free(struct rsb_eventlog *log);
RSB_DEFINE_CLEANUP(struct rsb_eventlog *, rsb_eventlog_free)

/* The next one: an object with "time", "kind", "text", to be freed. 0: there is no more now. */
rsb_nodiscard int rsb_eventlog_next(struct rsb_eventlog *log, struct rsb_json **ret_event);
/* Waits until there may be more. -ENOENT: the sandbox was removed. -EINTR, -ETIMEDOUT (ms >= 0). */
rsb_nodiscard int rsb_eventlog_wait(struct rsb_eventlog *log, int ms);

#endif
