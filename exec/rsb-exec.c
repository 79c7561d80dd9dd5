/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "exec/exec.h"
#include "exec/outcome.h"
#include "util/fd.h"
#include "util/log.h"

int
main(int argc, char **argv)
{
	if (rsb_fd_fill_standard() < 0)
		return RSB_EXIT_FAILED;
	rsb_log_init("rsb-exec", RSB_LOG_WARN, STDERR_FILENO);
	rsb_exec_main(argc, argv, environ, "rsb-exec");
}
