/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"
#include "exec/verbs.h"

static int
run_exec(const struct rsb_verb *verb, int argc, char **argv, char **env)
{
	(void)verb;
	rsb_exec_main(argc, argv, env, "rsb-exec");
}

const struct rsb_verb rsb_verb_exec = {
	.name = "exec",
	.usage = "exec [OPTION]... [--] COMMAND [ARGUMENT]...",
	.help = "Run a command in the sandbox; the same as rsb-exec(1).",
	.run = run_exec,
};
