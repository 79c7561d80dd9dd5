/* SPDX-License-Identifier: MIT */

/*
 * Linked, in builds with a sanitizer, into what runs in sandboxes: neither environment nor standard
 * error come from whoever runs the tests, so that the reports need a place of their own.
 */

#define OPTIONS "log_path=/tmp/rsb-sanitizer:halt_on_error=1:print_stacktrace=1"

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
const char *__tsan_default_options(void);

const char *
__asan_default_options(void)
{
	return OPTIONS;
}

const char *
__ubsan_default_options(void)
{
	return OPTIONS;
}

const char *
__tsan_default_options(void)
{
	return OPTIONS;
}
