/* SPDX-License-Identifier: MIT */
#ifndef RSB_PROCSTAT_H
#define RSB_PROCSTAT_H

/*
 * What /proc says about processes, for who comes from a fork of a program with threads and never
 * execs: async-signal-safe, no memory is taken, directories are read by getdents64(2). It is old
 * when it is read: whoever acts on it holds the process by a pidfd, and reads it again.
 */

#include <stdbool.h>
#include <sys/types.h>

struct rsb_procstat {
	pid_t pid;
	pid_t ppid;
	pid_t pgid;
	pid_t sid;
	char state; /* proc_pid_stat(5) */
};

/* proc_fd: /proc, open for reading. False: there is no such process. */
bool rsb_procstat_read(int proc_fd, pid_t pid, struct rsb_procstat *ret_stat);
/* Calls fn for every process, in order of pids. */
void rsb_procstat_each(
	int proc_fd, void (*fn)(void *arg, const struct rsb_procstat *stat), void *arg);
/* Sends signal to the process, which is known by its parent or its session to be the same. */
bool rsb_procstat_signal(int proc_fd, const struct rsb_procstat *stat, int signal);

#endif
