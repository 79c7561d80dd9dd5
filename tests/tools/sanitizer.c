/* SPDX-License-Identifier: MIT */

/*
 * Linked, in builds with a sanitizer, into what runs in sandboxes: neither environment nor standard
 * error come from whoever runs the tests, so that the reports need a place of their own.
 */

#include <unistd.h>

#define OPTIONS "halt_on_error=1:print_stacktrace=1"

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
const char *__tsan_default_options(void);

/* The monitor of a sandbox, rsb-envd but not process 1, has the standard error of rsb-local. */
static const char *
options(void)
{
#ifdef RSB_ENVD
	if (getpid() != 1)
		return OPTIONS;
#endif
	return OPTIONS ":log_path=/tmp/rsb-sanitizer";
}

const char *
__asan_default_options(void)
{
	return options();
}

const char *
__ubsan_default_options(void)
{
	return options();
}

const char *
__tsan_default_options(void)
{
	return options();
}
