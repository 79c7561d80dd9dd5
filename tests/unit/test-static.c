/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "util/hash.h"
#include "util/log.h"
#include "util/loop.h"
#include "util/spawn.h"
#include "util/str.h"

#define RSB_LOG_MODULE "static"

/*
 * The sidecar is one static program with the C library in it, which cannot load what getaddrinfo(3)
 * and the user database load at run time. The floors that it stands on are linked here whole, in
 * the same way, and a warning of the linker about such a call is an error. A few calls show that
 * the result runs.
 */

static int
run_true(void)
{
	static const char *const argv[] = { "true", NULL };
	const struct rsb_spawn spec = { .argv = argv, .stdio = { -1, -1, -1 } };
	pid_t pid;
	int r;

	r = rsb_spawn(&spec, &pid, NULL);
	if (r < 0)
		return r;
	return rsb_spawn_wait(pid);
}

int
main(void)
{
	RSB_CLEANUP(rsb_loop_freep) struct rsb_loop *loop = NULL;
	uint8_t digest[RSB_SHA256_SIZE];
	char hex[2 * sizeof(digest) + 1];
	int r;

	r = rsb_loop_new(rsb_clock_monotonic(), &loop);
	if (r < 0)
		return -rsb_err_r(r, "cannot make a loop");
	r = rsb_loop_step(loop, 0);
	if (r < 0)
		return -rsb_err_r(r, "cannot turn a loop");
	rsb_sha256(rsb_bytes_str("abc"), digest);
	rsb_str_hex(digest, sizeof(digest), hex);
	if (strncmp(hex, "ba7816bf", 8) != 0)
		return EXIT_FAILURE;
	return run_true() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
