/* SPDX-License-Identifier: MIT */
#ifndef RSB_PROC_SPAWN_H
#define RSB_PROC_SPAWN_H

/*
 * A command, made ready before the fork, and its way from the fork to execve(2). Between the two
 * only async-signal-safe calls are made, on memory that was prepared: the sidecar has threads, and
 * one of them may hold any lock at the moment of the fork.
 */

#include <stdbool.h>

#include "proto/op.h"
#include "sidecar/sess.h"

struct rsb_exec {
	const struct rsb_sidecar_config *config; /* borrowed */
	char **argv;                             /* argv[0] as it was given */
	char **env;
	char **candidates; /* what to try for argv[0], in order of PATH */
	char **sh_argv; /* for a script without "#!", as execvp(3); [1] is filled in by the child */
	char *cwd;
	mode_t umask;
	int stdio[3]; /* owned; the command's ends */
};

/* What the child says when it did not get to the program. */
struct rsb_exec_failure {
	int32_t stage; /* RSB_SPAWN_STAGE_* */
	int32_t error; /* positive errno */
};

/* Copies what it needs of req. The descriptors of stdio are -1 at first. */
rsb_nodiscard int rsb_exec_new(const struct rsb_sidecar_config *config,
	const struct rsb_spawn_req *req, struct rsb_exec **ret_exec);
/* Closes stdio. NULL is fine. */
void rsb_exec_free(struct rsb_exec *exec);
RSB_DEFINE_CLEANUP(struct rsb_exec *, rsb_exec_free)

/*
 * In the child: becomes the program, or writes the failure to error_fd (close-on-exec) and exits.
 */
rsb_noreturn void rsb_exec_become(const struct rsb_exec *exec, int error_fd);

#endif
