/* SPDX-License-Identifier: MIT */
#ifndef RSB_LAUNCH_H
#define RSB_LAUNCH_H

/* Starts one program of the sandbox as one of its users. */

#include <stdbool.h>

#include "sidecar/envd/user.h"

struct rsb_launch {
	char *const *argv; /* NULL-terminated; argv[0] is looked up on PATH of env */
	char **env;        /* NULL-terminated; all there is */
	const char *cwd;
	const struct rsb_user *user;
	bool with_stdin; /* else /dev/null */
};

/* Our ends of the pipes: blocking state is non-blocking, all close-on-exec. */
struct rsb_launched {
	pid_t pid;
	int in; /* -1 without stdin */
	int out;
	int err;
};

/*
 * Negative errno only when no process could be made. A program that cannot be run is a process that
 * writes a shell's message to its standard error and exits with 127 or 126.
 */
rsb_nodiscard int rsb_launch(const struct rsb_launch *spec, struct rsb_launched *ret_launched);

#endif
