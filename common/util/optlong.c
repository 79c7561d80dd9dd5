/* SPDX-License-Identifier: MIT */
#include "util/optlong.h"

#include <stdio.h>
#include <string.h>

int
rsb_optlong(int argc, char *const *argv, const char *letters, const struct option *options)
{
	int which = -1;
	int c = getopt_long(argc, argv, letters, options, &which);
	const char *word;
	size_t n;

	if (which < 0 || c == '?')
		return c;
	word = argv[optind - 1];
	/* Its argument was a word of its own. */
	if (optarg && optarg == word)
		word = argv[optind - 2];
	n = strlen(options[which].name);
	if (strncmp(word + 2, options[which].name, n) == 0)
		return c;
	if (opterr)
		(void)fprintf(stderr, "%s: unrecognized option '%s'\n", argv[0], word);
	optopt = 0;
	return '?';
}
