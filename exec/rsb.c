/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exec/outcome.h"
#include "exec/verbs.h"
#include "util/fd.h"
#include "util/log.h"

static const struct rsb_verb *const verbs[] = {
	&rsb_verb_up,
	&rsb_verb_down,
	&rsb_verb_status,
	&rsb_verb_list,
	&rsb_verb_create,
	&rsb_verb_destroy,
	&rsb_verb_mount,
	&rsb_verb_umount,
	&rsb_verb_exec,
	&rsb_verb_sync,
	&rsb_verb_trust,
	&rsb_verb_doctor,
};

static void
print_help(FILE *to)
{
	(void)fputs("Usage: rsb VERB [OPTION]... [ARGUMENT]...\n"
		    "Work in a sandbox as if it were here.\n\n",
		to);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(verbs); i++)
		(void)fprintf(to, "  %-9s %s\n", verbs[i]->name, verbs[i]->help);
	(void)fputs("\n'rsb VERB --help' tells its options, rsb(1) the rest.\n", to);
}

/* A result that nobody gets is no success; who closed stdout does not want it. */
static int
end(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno == EBADF)
		return status;
	(void)fprintf(stderr, "rsb: the result cannot be written: %s\n", strerror(errno));
	return status == 0 ? RSB_EXIT_FAILED : status;
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (rsb_fd_fill_standard() < 0)
		return RSB_EXIT_FAILED;
	rsb_log_init("rsb", RSB_LOG_WARN, STDERR_FILENO);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i]->name, name) == 0)
			return end(rsb_verb_run(verbs[i], argc - 1, argv + 1, environ));
	if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0) {
		print_help(stdout);
		return 0;
	}
	if (strcmp(name, "--version") == 0) {
		(void)puts("rsb " RSB_VERSION);
		return 0;
	}
	if (!*name)
		print_help(stderr);
	else
		(void)fprintf(
			stderr, "rsb: there is no verb '%s'; 'rsb --help' lists them\n", name);
	return RSB_EXIT_USAGE;
}
