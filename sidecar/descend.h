/* SPDX-License-Identifier: MIT */
#ifndef RSB_DESCEND_H
#define RSB_DESCEND_H

/*
 * The living descendants of the calling process, found in /proc; async-signal-safe, as
 * util/procstat.h is.
 */

#include "util/procstat.h"

/* Processes of the whole system that are looked at. */
#define RSB_DESCEND_MAX 32768

/*
 * Sends to every descendant that is no zombie; pgid > 0: only to those of that process group.
 * signal 0 only counts. table has RSB_DESCEND_MAX entries. Returns the number of processes.
 */
int rsb_descend_signal(int proc_fd, struct rsb_procstat *table, int signal, pid_t pgid);

#endif
