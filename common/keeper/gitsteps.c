/* SPDX-License-Identifier: MIT */
#include "keeper/gitsteps.h"

#include <stdio.h>
#include <string.h>

#include "keeper/gitparse.h"
#include "util/macro.h"
#include "util/str.h"

const char *const rsb_gitsteps_dirs[] = { "rebase-apply", "rebase-merge", "sequencer", NULL };

const struct rsb_gitsteps_file rsb_gitsteps_files[] = {
	{ "MERGE_RR", RSB_GIT_RERERE },
	{ "BISECT_NAMES", RSB_GIT_OPTION },
	{ NULL, RSB_GIT_NONE },
};

/* In one of those directories. */
static const struct rsb_gitsteps_file files[] = {
	{ "git-rebase-todo", RSB_GIT_TODO },
	{ "opts", RSB_GIT_OPTS },
	{ "strategy", RSB_GIT_STRATEGY },
	{ "strategy_opts", RSB_GIT_OPTION },
	{ "gpg_sign_opt", RSB_GIT_OPTION },
	{ "apply-opt", RSB_GIT_OPTION },
	{ "author-script", RSB_GIT_AUTHOR },
};

enum rsb_git_kind
rsb_gitsteps_kind(struct rsb_bytes name)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(files); i++) {
		if (rsb_str_is(name, files[i].name))
			return files[i].kind;
	}
	return RSB_GIT_NONE;
}

bool
rsb_gitsteps_holds(enum rsb_git_kind kind)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(files); i++) {
		if (files[i].kind == kind)
			return true;
	}
	return false;
}

static void
skip(struct rsb_bytes *text, size_t n)
{
	text->data += n;
	text->size -= n;
}

static bool
is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* ---- git-rebase-todo ---- */

/*
 * Every command but exec. Older versions take a longer word for the command that it begins
 * with, so a word that is not known is none.
 */
static bool
is_line_ok(struct rsb_bytes line)
{
	static const char commands[] =
		" pick p revert edit e reword r fixup f squash s break b label l reset t merge m"
		" drop d noop update-ref u ";
	struct rsb_bytes word;

	while (line.size && is_blank(line.data[0]))
		skip(&line, 1);
	word = line;
	for (word.size = 0; word.size < line.size && !is_blank(line.data[word.size]);)
		word.size++;
	return !word.size || word.data[0] == '#' || rsb_str_has_word(word, commands);
}

static bool
is_todo_ok(struct rsb_bytes text)
{
	if (text.size && memchr(text.data, 0, text.size))
		return false;
	while (text.size) {
		const uint8_t *end = memchr(text.data, '\n', text.size);
		const size_t n = end ? (size_t)(end - text.data) : text.size;

		if (!is_line_ok((struct rsb_bytes){ text.data, n }))
			return false;
		skip(&text, n + (end != NULL));
	}
	return true;
}

/* ---- the others ---- */

/* Those that git brings along. */
static bool
is_strategy_ok(struct rsb_bytes text)
{
	if (text.size && text.data[text.size - 1] == '\n')
		text.size--;
	return rsb_str_has_word(text, " recursive ort resolve octopus ours subtree ");
}

/* In sequencer, in the form of a configuration. */
static int
check_opt(void *arg, const struct rsb_git_entry *entry)
{
	static const char keys[] =
		" options.no-commit options.edit options.signoff options.record-origin"
		" options.allow-ff options.allow-empty options.allow-empty-message"
		" options.keep-redundant-commits options.drop-redundant-commits options.mainline"
		" options.allow-rerere-auto options.default-msg-cleanup ";
	bool *ok = arg;

	if (strcmp(entry->name, "options.strategy") == 0)
		*ok &= entry->value && is_strategy_ok(rsb_bytes_str(entry->value));
	else
		*ok &= rsb_str_has_word(rsb_bytes_str(entry->name), keys);
	return 0;
}

static bool
is_opts_ok(struct rsb_bytes text)
{
	bool ok = true;

	return rsb_gitparse(text, check_opt, &ok) >= 0 && ok;
}

static bool
is_option_ok(struct rsb_bytes text)
{
	while (text.size && (is_blank(text.data[0]) || text.data[0] == '\n'))
		skip(&text, 1);
	return !text.size;
}

static bool
take(struct rsb_bytes *text, const char *what)
{
	const size_t n = strlen(what);

	if (text->size < n || memcmp(text->data, what, n) != 0)
		return false;
	skip(text, n);
	return true;
}

/* What a shell takes for one word, as git quotes it. */
static bool
take_quoted(struct rsb_bytes *text)
{
	do {
		const uint8_t *end;

		if (!take(text, "'"))
			return false;
		end = text->size ? memchr(text->data, '\'', text->size) : NULL;
		if (!end)
			return false;
		skip(text, (size_t)(end - text->data) + 1);
	} while (take(text, "\\'") || take(text, "\\!"));
	return true;
}

/* Of a rebase -p, git before 2.34 has a shell read it. */
static bool
is_author_ok(struct rsb_bytes text)
{
	while (text.size) {
		if (!take(&text, "GIT_AUTHOR_NAME=") && !take(&text, "GIT_AUTHOR_EMAIL=") &&
			!take(&text, "GIT_AUTHOR_DATE="))
			return false;
		if (!take_quoted(&text) || (text.size && !take(&text, "\n")))
			return false;
	}
	return true;
}

static bool
is_ok(const struct rsb_gitallow *what)
{
	if (what->kind == RSB_GIT_TODO)
		return is_todo_ok(what->text);
	if (what->kind == RSB_GIT_OPTS)
		return is_opts_ok(what->text);
	if (what->kind == RSB_GIT_STRATEGY)
		return is_strategy_ok(what->text);
	return what->kind == RSB_GIT_AUTHOR ? is_author_ok(what->text) : is_option_ok(what->text);
}

int
rsb_gitsteps_judge(const struct rsb_gitallow *what, char why[static RSB_GITALLOW_WHY_MAX])
{
	if (is_ok(what))
		return RSB_GITALLOW_AS_IS;
	(void)snprintf(why, RSB_GITALLOW_WHY_MAX, "%s",
		what->kind == RSB_GIT_TODO
			? "a rebase that was not begun here, with commands of its own"
			: "an operation that was not begun here, with options of its own");
	return RSB_GITALLOW_REFUSED;
}
