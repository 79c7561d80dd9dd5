/* SPDX-License-Identifier: MIT */
#ifndef RSB_DESCEND_H
#define RSB_DESCEND_H

/*
 * The living descendants of the calling process, found in /proc. Async-signal-safe: no memory is
 * taken, directories are read by getdents64(2). A list of pids is old when it is read; so each
 * process is held by a pidfd and looked at again before it is sent a signal.
 */

#include <stddef.h>
#include <sys/types.h>

/* Processes of the whole system that are looked at. */
#define RSB_DESCEND_MAX 32768

struct rsb_descend {
	pid_t pid;
	pid_t ppid;
	pid_t pgid;
	char state; /* proc_pid_stat(5); 0 once it is known to be no descendant */
};

/*
 * Sends to every descendant that is no zombie; pgid > 0: only to those of that process group.
 * signal 0 only counts. table has RSB_DESCEND_MAX entries. Returns the number of processes.
 */
int rsb_descend_signal(int proc_fd, struct rsb_descend *table, int signal, pid_t pgid);

#endif
