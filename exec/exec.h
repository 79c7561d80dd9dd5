/* SPDX-License-Identifier: MIT */
#ifndef RSB_EXEC_H
#define RSB_EXEC_H

/* The command line of rsb-exec, which is also the verb exec of rsb. */

#include "exec/where.h"
#include "keeper/config.h"

struct rsb_exec_need {
	const struct rsb_where *where;
	const struct rsb_config *config;
	char *const *env;
	const char *const *overrides; /* as -o of rsb.conf(5), NULL-terminated */
	char **argv;                  /* ours */
};

/* No daemon runs: starts one. Nothing was asked or read yet, so that it may also execve(2). */
typedef int (*rsb_exec_start_fn)(const struct rsb_exec_need *need, struct rsb_diag *diag);

/* Does not return but by exit(3) or a signal. */
__attribute__((noreturn)) void rsb_exec_main(
	int argc, char **argv, char **env, rsb_exec_start_fn start);

#endif
