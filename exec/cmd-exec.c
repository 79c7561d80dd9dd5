/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"
#include "exec/verbs.h"

static int
exec_main(int argc, char **argv, char **env)
{
	rsb_exec_main(argc, argv, env, "rsb-exec");
}

const struct rsb_verb rsb_verb_exec = {
	.name = "exec",
	.usage = "exec [OPTION]... [--] COMMAND [ARGUMENT]...",
	.help = "Run a command in the sandbox; the same as rsb-exec(1).",
	.main = exec_main,
};
