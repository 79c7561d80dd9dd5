/* SPDX-License-Identifier: MIT */
#ifndef RSB_HOOK_H
#define RSB_HOOK_H

/*
 * Runs a command of the user's configuration: by /bin/sh -c, in a session of its own, with the
 * caller's environment and some variables more, and not for longer than it may, or than we live: if
 * we are killed, all of its session is.
 */

#include <stdbool.h>

#include "util/diag.h"
#include "util/macro.h"

#define RSB_HOOK_VARS_MAX 16u

struct rsb_hook {
	const char *command;
	char *const *env;        /* as environ(7) */
	const char *const *vars; /* NAME=VALUE, which win; NULL-terminated, RSB_HOOK_VARS_MAX */
	const char *cwd;         /* NULL: ours */
	bool quiet;              /* its output is thrown away, else it goes to our standard error */
	uint64_t timeout_ns;     /* then all of its session that is left is killed */
	int stop_fd;             /* the same once this can be read; -1: none */
};

/*
 * Waits. Its exit status, 128 + the signal; -ETIMEDOUT, -ECANCELED (stop_fd), or why it was not
 * started, each with a sentence. Any thread.
 */
rsb_nodiscard int rsb_hook_run(const struct rsb_hook *hook, struct rsb_diag *diag);

/* The variables that tell every command of which sandbox it is about. */
#define RSB_HOOK_ABOUT_N 3u
struct rsb_hook_about {
	const char *sandbox; /* its name */
	const char *sandbox_id;
	const char *dir; /* that was synced in, or "" */
};
/* Caller frees them, also those of a failure, which are NULL or whole. -ENOMEM. */
rsb_nodiscard int rsb_hook_about(
	const struct rsb_hook_about *about, char *ret_vars[static RSB_HOOK_ABOUT_N]);

#endif
