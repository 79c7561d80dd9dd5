/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/beside.h"
#include "exec/exec.h"
#include "exec/outcome.h"
#include "util/cleanup.h"
#include "util/fd.h"
#include "util/log.h"

/*
 * rsb does it: whoever talks to control planes carries libcurl and what that carries, and to load
 * those takes longer than a command whose daemon runs.
 */
static int
become_rsb(const struct rsb_exec_need *need, struct rsb_diag *diag)
{
	rsb_autofree char *path = rsb_beside("rsb");
	rsb_autofree char **argv = NULL;
	size_t n = 0;
	int r;

	while (need->argv[n])
		n++;
	argv = rsb_new_array(char *, n + 2);
	if (!argv)
		return -ENOMEM;
	argv[0] = (char *)(uintptr_t) "rsb";
	argv[1] = (char *)(uintptr_t) "exec";
	for (size_t i = 1; i < n; i++)
		argv[i + 1] = need->argv[i];
	(void)execvp(path ? path : "rsb", argv);
	r = -errno;
	return rsb_diag_set(diag, r, "rsb cannot be started: %s", strerror(-r));
}

int
main(int argc, char **argv)
{
	if (rsb_fd_fill_standard() < 0)
		return RSB_EXIT_FAILED;
	rsb_log_init("rsb-exec", RSB_LOG_WARN, STDERR_FILENO);
	rsb_exec_main(argc, argv, environ, become_rsb);
}
