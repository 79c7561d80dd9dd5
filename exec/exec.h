/* SPDX-License-Identifier: MIT */
#ifndef RSB_EXEC_H
#define RSB_EXEC_H

/* The command line of rsb-exec, which is also the verb exec of rsb. */

/* Does not return but by exit(3) or a signal. program: as it calls itself in messages. */
__attribute__((noreturn)) void rsb_exec_main(
	int argc, char **argv, char **env, const char *program);

#endif
