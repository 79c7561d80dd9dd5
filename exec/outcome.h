/* SPDX-License-Identifier: MIT */
#ifndef RSB_OUTCOME_H
#define RSB_OUTCOME_H

/*
 * The end of a remote command as our own end: its status; its signal, by which we die too, so that
 * a shell sees 128 + n and stops its loop; 127 and 126 for what exec refused; 125 when rsb failed.
 */

#include "exec/run.h"

#define RSB_EXIT_USAGE 2    /* of rsb and rsb-mount */
#define RSB_EXIT_FAILED 125 /* rsb itself failed */
#define RSB_EXIT_NOEXEC 126
#define RSB_EXIT_NOENT 127

/* Ends the process by sig, or as a shell would tell that. */
rsb_noreturn void rsb_outcome_die_by(int sig);
/*
 * Writes the one line that is due to stderr ("rsb-exec: fatal: ..." before the command began,
 * "rsb-exec: lost: ..." after), then ends the process.
 */
rsb_noreturn void rsb_outcome_exit(const char *program, const struct rsb_run *run,
	const struct rsb_run_result *result, const struct rsb_diag *diag);

#endif
