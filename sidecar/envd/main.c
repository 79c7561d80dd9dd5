/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sidecar/envd/boot.h"
#include "sidecar/envd/init.h"
#include "sidecar/envd/monitor.h"

static int
boot(char *const argv[])
{
	int r = rsb_boot_seal(argv);

	if (r < 0) {
		(void)fprintf(stderr, "rsb-envd: cannot run from memory: %s\n", strerror(-r));
		return 1;
	}
	/* The environment is empty; the tools that are run belong to the system. */
	if (setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1) < 0)
		return 1;
	return rsb_monitor_run(STDIN_FILENO);
}

int
main(int argc, char *argv[])
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		(void)printf("rsb-envd %s\n", RSB_VERSION);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--boot") == 0)
		return boot(argv);
	if (argc == 2 && strcmp(argv[1], "--init") == 0 && getpid() == 1)
		return rsb_init_run() < 0;
	(void)fprintf(
		stderr, "rsb-envd is started by rsb-local for each sandbox; see rsb-local(8)\n");
	return 2;
}
