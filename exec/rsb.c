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
	&rsb_verb_events,
	&rsb_verb_list,
	&rsb_verb_create,
	&rsb_verb_destroy,
	&rsb_verb_mount,
	&rsb_verb_umount,
	&rsb_verb_exec,
	&rsb_verb_sync,
	&rsb_verb_snapshot,
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

static bool
is_one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(*words, word) != 0)
		words++;
	return *words;
}

static const struct rsb_verb *
find_verb(const char *name)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i]->name, name) == 0)
			return verbs[i];
	return NULL;
}

static int
wrong(const char *name)
{
	(void)fprintf(stderr, "rsb: there is no verb '%s'; 'rsb --help' lists them\n", name);
	return RSB_EXIT_USAGE;
}

/* "rsb help VERB" is "rsb VERB --help". */
static int
help(const char *name)
{
	const struct rsb_verb *verb = name ? find_verb(name) : NULL;
	char *argv[] = { (char *)(uintptr_t)name, (char *)(uintptr_t) "--help", NULL };

	if (name && !verb)
		return wrong(name);
	if (verb)
		return rsb_verb_run(verb, 2, argv, environ);
	print_help(stdout);
	return 0;
}

int
main(int argc, char **argv)
{
	static const char *const helps[] = { "--help", "-h", "help", NULL };
	static const char *const versions[] = { "--version", "-V", "version", NULL };
	const char *name = argc > 1 ? argv[1] : "";
	const struct rsb_verb *verb = find_verb(name);

	if (rsb_fd_fill_standard() < 0)
		return RSB_EXIT_FAILED;
	rsb_log_init("rsb", RSB_LOG_WARN, STDERR_FILENO);
	if (verb)
		return end(rsb_verb_run(verb, argc - 1, argv + 1, environ));
	if (is_one_of(name, helps))
		return end(help(argc > 2 ? argv[2] : NULL));
	if (is_one_of(name, versions)) {
		(void)puts("rsb " RSB_VERSION);
		return end(0);
	}
	if (*name)
		return wrong(name);
	print_help(stderr);
	return RSB_EXIT_USAGE;
}
