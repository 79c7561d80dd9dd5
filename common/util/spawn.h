/* SPDX-License-Identifier: MIT */
#ifndef RSB_SPAWN_H
#define RSB_SPAWN_H

/*
 * Starts a local helper program. exec's errno comes back through a close-on-exec pipe, so a missing
 * program is -ENOENT here and not an exit status. All signal dispositions are default and the mask
 * is empty in the child; descriptors from 3 up are closed unless listed. Any thread.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "util/macro.h"

struct rsb_spawn {
	const char *const *argv; /* NULL-terminated; argv[0] without a '/' is looked up on PATH */
	const char *const *env;  /* NULL: ours */
	const char *cwd;         /* NULL: ours */
	int stdio[3];            /* borrowed; -1 = /dev/null */
	const int *keep;         /* borrowed descriptors that keep their numbers */
	size_t n_keep;
	int setsid;          /* 1: a new session */
	const int *leash_fd; /* borrowed; with setsid: see util/leash.h; NULL: none */
};

/* ret_pidfd may be NULL; it is close-on-exec. The caller waits for the child. */
rsb_nodiscard int rsb_spawn(const struct rsb_spawn *spec, pid_t *ret_pid, int *ret_pidfd);
/* Waits; returns the exit status, 128 + signal, or a negative errno. */
rsb_nodiscard int rsb_spawn_wait(pid_t pid);

/* Child side, between fork and exec, for those that fork themselves: async-signal-safe. */
void rsb_spawn_reset_signals(void);
void rsb_spawn_close_fds(const int *keep, size_t n_keep);

/* Whether a program of that name is found in path, as execvp(3) looks for it. NULL: the default. */
bool rsb_spawn_on_path(const char *path, const char *program);

#endif
