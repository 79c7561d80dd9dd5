/* SPDX-License-Identifier: MIT */
#include "util/optlong.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* word is "--" and the name, perhaps with "=" and an argument behind it. */
static bool
is_written_out(const char *word, const struct option *option)
{
	const size_t n = strlen(option->name);

	return strncmp(word, "--", 2) == 0 && strncmp(word + 2, option->name, n) == 0 &&
	       (word[2 + n] == '\0' || word[2 + n] == '=');
}

static int
unknown(const char *word, struct rsb_diag *diag)
{
	(void)rsb_diag_set(diag, -EINVAL, "unknown option '%.*s'", (int)strcspn(word, "="), word);
	return '?';
}

static int
say_letter(const char *letters, struct rsb_diag *diag)
{
	const char *found = strchr(letters, optopt);

	(void)rsb_diag_set(diag, -EINVAL,
		found && found[1] == ':' ? "option '-%c' needs an argument"
					 : "unknown option '-%c'",
		optopt);
	return '?';
}

/* word: the last one that was taken whole; NULL: none was, so that it is a letter among others. */
static int
say_wrong(
	const char *word, const char *letters, const struct option *options, struct rsb_diag *diag)
{
	const struct option *o = options;

	if (word && optopt == 0)
		return unknown(word, diag);
	while (word && o->name && !(o->val == optopt && is_written_out(word, o)))
		o++;
	if (!word || !o->name)
		return strncmp(word ? word : "", "--", 2) == 0 ? unknown(word, diag)
							       : say_letter(letters, diag);
	(void)rsb_diag_set(diag, -EINVAL,
		o->has_arg == required_argument ? "option '--%s' needs an argument"
						: "option '--%s' takes no argument",
		o->name);
	return '?';
}

int
rsb_optlong(int argc, char *const *argv, const char *letters, const struct option *options,
	struct rsb_diag *diag)
{
	const int before = optind;
	int which = -1;
	const char *word;
	int c;

	opterr = 0;
	c = getopt_long(argc, argv, letters, options, &which);
	if (c == '?')
		return say_wrong(optind > before && optind > 0 ? argv[optind - 1] : NULL, letters,
			options, diag);
	if (which < 0)
		return c;
	word = argv[optind - 1];
	/* Its argument was a word of its own. */
	if (optarg && optarg == word)
		word = argv[optind - 2];
	return is_written_out(word, &options[which]) ? c : unknown(word, diag);
}
