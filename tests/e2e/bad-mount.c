/* SPDX-License-Identifier: MIT */
/*
 * An rsb-mount that asks for a running mount as the real one does, and when it is to go on with it
 * crashes, or hangs if it is called so.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fuse/askupgrade.h"

int
main(int argc, char **argv)
{
	const struct rlimit no_core = { .rlim_cur = 0 };
	struct rsb_options options;
	struct rsb_diag diag = { .text = "" };
	char self[4096] = "";
	int r;

	r = rsb_options_parse(argc, argv, &options, &diag);
	if (r >= 0 && options.takeover.role) {
		(void)setrlimit(RLIMIT_CORE, &no_core);
		if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
			!strstr(self, "hangs"))
			abort();
		for (;;)
			(void)pause();
	}
	if (r >= 0)
		r = rsb_askupgrade(&options, environ, &diag);
	if (r < 0)
		(void)fprintf(stderr, "rsb-mount: %s\n", rsb_diag_text(&diag, r));
	rsb_options_done(&options);
	return r < 0;
}
