/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "exec/exec.h"
#include "util/log.h"

int
main(int argc, char **argv)
{
	rsb_log_init("rsb-exec", RSB_LOG_WARN, STDERR_FILENO);
	rsb_exec_main(argc, argv, environ, "rsb-exec");
}
