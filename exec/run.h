/* SPDX-License-Identifier: MIT */
#ifndef RSB_RUN_H
#define RSB_RUN_H

/*
 * One command in the sandbox as if it ran here: our standard input, output and error are its own,
 * our signals reach it, and its end is told as waitid(2) told it there. Nothing of ours is written
 * to the command's output.
 */

#include "exec/client.h"

struct rsb_run {
	const char *socket; /* of the daemon */
	char *const *argv;  /* NULL-terminated, at least one */
	const char *const
		*env; /* "NAME=value", NULL-terminated: exactly what the command gets from here */
	const char *cwd; /* relative to the workspace or absolute */
	bool no_stdin;
	bool no_signals;   /* they do to us what they do, and are not for the command */
	uint64_t drain_ns; /* after its end: for output of others that hold its streams */
	/*
	 * Before all output: what was lost that nobody was told of, JSON of ctl_losses. NULL: that
	 * is left to others.
	 */
	void (*losses)(struct rsb_bytes json);
};

enum rsb_run_end {
	RSB_RUN_EXITED,    /* code */
	RSB_RUN_SIGNALED,  /* signal */
	RSB_RUN_NOT_BEGUN, /* error, stage: chdir or execve refused */
	RSB_RUN_FAILED,    /* before it began: error and the sentence */
	RSB_RUN_UNKNOWN,   /* it was asked for, and may have begun: error */
	RSB_RUN_UNWRITTEN, /* it ended, but not all of its output could be written: error */
	RSB_RUN_LOST,      /* after it began we lost sight of it: error */
	RSB_RUN_CUT,       /* it ended by code or signal, but output is missing: output, came */
};

struct rsb_run_result {
	enum rsb_run_end end;
	int code;
	int signal;
	int error;      /* negative errno */
	bool unreached; /* FAILED: the daemon was gone, so that nothing was asked of it */
	bool ending;    /* FAILED: it is about to end and took nothing; no input was read */
	uint32_t stage; /* RSB_SPAWN_STAGE_* */
	/* CUT: bytes that the command wrote to the streams that had a reader, and of these came. */
	uint64_t output;
	uint64_t came;
};

/*
 * Waits for the end. Uses signalfd(2), unless no_signals: the calling thread must be the only one,
 * and what is forwarded stays blocked.
 */
void rsb_run(const struct rsb_run *run, struct rsb_run_result *ret_result, struct rsb_diag *diag);

#endif
