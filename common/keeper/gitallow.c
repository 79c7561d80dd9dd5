/* SPDX-License-Identifier: MIT */
#include "keeper/gitallow.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper/gitnames.h"
#include "keeper/gitpath.h"
#include "keeper/gitsteps.h"
#include "keeper/gitview.h"
#include "util/cleanup.h"
#include "util/macro.h"
#include "util/str.h"

#define GITFILE "gitdir: "

static bool
is_same(struct rsb_bytes a, struct rsb_bytes b)
{
	return a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0);
}

static void
say(char why[static RSB_GITALLOW_WHY_MAX], const char *text)
{
	(void)snprintf(why, RSB_GITALLOW_WHY_MAX, "%s", text);
}

/* ---- attributes ---- */

/* "name", "-name", "!name", "name=value": of a driver only those that git has built in. */
static bool
is_attribute_ok(struct rsb_bytes token)
{
	static const char plain[] =
		" text eol crlf binary ident whitespace export-ignore export-subst encoding"
		" working-tree-encoding delta conflict-marker-size linguist-detectable"
		" linguist-documentation linguist-generated linguist-language linguist-vendored ";
	static const char drivers[] =
		" ada bash bibtex cpp csharp css dts elixir fortran fountain golang html java"
		" kotlin markdown matlab objc pascal perl php python ruby rust scheme tex ";
	static const char merges[] = " text binary union ";
	const bool unset = token.size && (token.data[0] == '-' || token.data[0] == '!');
	const uint8_t *equals = memchr(token.data, '=', token.size);
	struct rsb_bytes name = token;
	struct rsb_bytes value = { 0 };

	if (unset) {
		name.data++;
		name.size--;
		return rsb_str_has_word(name, plain) ||
		       rsb_str_has_word(name, " diff merge filter ");
	}
	if (!equals)
		return rsb_str_has_word(name, plain) || rsb_str_has_word(name, " diff merge ");
	name.size = (size_t)(equals - token.data);
	value.data = equals + 1;
	value.size = token.size - name.size - 1;
	return rsb_str_has_word(name, plain) ||
	       (rsb_str_has_word(name, " diff ") && rsb_str_has_word(value, drivers)) ||
	       (rsb_str_has_word(name, " merge ") && rsb_str_has_word(value, merges));
}

static bool
is_space(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Cuts the first word off line. */
static struct rsb_bytes
take_word(struct rsb_bytes *line)
{
	struct rsb_bytes word;

	while (line->size && is_space(line->data[0])) {
		line->data++;
		line->size--;
	}
	word = *line;
	while (line->size && !is_space(line->data[0])) {
		line->data++;
		line->size--;
	}
	word.size -= line->size;
	return word;
}

/* Quoted patterns and macros of one's own are rare enough to be left out. */
static bool
is_line_ok(struct rsb_bytes line)
{
	struct rsb_bytes pattern = take_word(&line);
	struct rsb_bytes word;

	if (!pattern.size || pattern.data[0] == '#')
		return true;
	if (pattern.data[0] == '"' || pattern.data[0] == '[')
		return false;
	while ((word = take_word(&line)).size) {
		if (!is_attribute_ok(word))
			return false;
	}
	return true;
}

static int
judge_attributes(const struct rsb_gitallow *what, struct rsb_buf *view, char *why)
{
	const bool has_nul = memchr(what->text.data, 0, what->text.size) != NULL;
	struct rsb_bytes left = what->text;
	bool held = has_nul;
	int r = 0;

	while (left.size && r >= 0 && !has_nul) {
		const uint8_t *end = memchr(left.data, '\n', left.size);
		struct rsb_bytes line = left;

		line.size = end ? (size_t)(end - left.data) + 1 : left.size;
		left.data += line.size;
		left.size -= line.size;
		if (is_line_ok(line))
			r = rsb_buf_append(view, line.data, line.size);
		else
			held = true;
	}
	if (r >= 0 && !held) {
		rsb_buf_clear(view);
		return RSB_GITALLOW_AS_IS;
	}
	say(why, has_nul ? "it cannot be read as attributes" : "an attribute that names a driver");
	if (r >= 0 && what->trusted) {
		rsb_buf_clear(view);
		r = rsb_buf_append(view, what->trusted->data, what->trusted->size);
	}
	return r < 0 ? r : RSB_GITALLOW_HELD;
}

/* ---- pointers ---- */

/* "gitdir: PATH", or PATH alone in commondir. */
bool
rsb_gitallow_pointer(enum rsb_git_kind kind, struct rsb_bytes text, struct rsb_bytes *ret_path)
{
	const size_t n_head = kind == RSB_GIT_GITFILE ? strlen(GITFILE) : 0;

	while (text.size && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
		text.size--;
	if ((kind != RSB_GIT_GITFILE && kind != RSB_GIT_COMMONDIR) || text.size <= n_head ||
		text.size >= PATH_MAX || memchr(text.data, '\n', text.size) ||
		memcmp(text.data, GITFILE, n_head) != 0)
		return false;
	*ret_path = (struct rsb_bytes){ .data = text.data + n_head, .size = text.size - n_head };
	return true;
}

static int
judge_pointer(const struct rsb_gitallow *what, struct rsb_buf *view, char *why)
{
	const size_t n_head = what->kind == RSB_GIT_GITFILE ? strlen(GITFILE) : 0;
	struct rsb_bytes path;
	rsb_autofree char *mapped = NULL;
	int r = -EACCES;

	if (rsb_gitallow_pointer(what->kind, what->text, &path))
		r = rsb_target_map(&what->place, path, &mapped);
	if (r == -ENOMEM)
		return r;
	if (r >= 0 && is_same(path, rsb_bytes_str(mapped)))
		return RSB_GITALLOW_AS_IS;
	if (r >= 0) {
		r = rsb_buf_printf(view, "%.*s%s\n", (int)n_head, GITFILE, mapped);
		return r < 0 ? r : RSB_GITALLOW_MAPPED;
	}
	say(why, "a repository outside the mount");
	r = what->trusted ? rsb_buf_append(view, what->trusted->data, what->trusted->size) : 0;
	return r < 0 ? r : RSB_GITALLOW_HELD;
}

/* ---- the rest ---- */

static int
judge_whole(const struct rsb_gitallow *what, struct rsb_buf *view, char *why)
{
	int r = 0;

	if (what->kind == RSB_GIT_RERERE && !what->text.size)
		return RSB_GITALLOW_AS_IS;
	say(why, what->kind == RSB_GIT_HOOK     ? "a hook that was not made here"
		 : what->kind == RSB_GIT_RERERE ? "conflicts to be recorded that did not arise here"
		 : what->kind == RSB_GIT_AWAY   ? "a file that a link called .git leads to"
						: "a remote in the old form");
	if (what->trusted)
		r = rsb_buf_append(view, what->trusted->data, what->trusted->size);
	return r < 0 ? r : RSB_GITALLOW_HELD;
}

int
rsb_gitallow_judge(const struct rsb_gitallow *what, struct rsb_buf *view,
	char why[static RSB_GITALLOW_WHY_MAX])
{
	why[0] = '\0';
	if (rsb_gitnames_holds(what->kind))
		return rsb_gitnames_judge(what, why);
	if (what->kind == RSB_GIT_NONE || (what->trusted && is_same(what->text, *what->trusted)))
		return RSB_GITALLOW_AS_IS;
	if (rsb_gitsteps_holds(what->kind))
		return rsb_gitsteps_judge(what, why);
	switch (what->kind) {
	case RSB_GIT_CONFIG:
		return rsb_gitview_config(what, view, why);
	case RSB_GIT_ATTRIBUTES:
		return judge_attributes(what, view, why);
	case RSB_GIT_GITFILE:
	case RSB_GIT_COMMONDIR:
		return judge_pointer(what, view, why);
	case RSB_GIT_ALTERNATES:
		return rsb_gitpath_alternates(what, view, why);
	case RSB_GIT_GITDIR:
		return rsb_gitpath_gitdir(what, view, why);
	case RSB_GIT_TODO:
	case RSB_GIT_OPTS:
	case RSB_GIT_STRATEGY:
	case RSB_GIT_OPTION:
	case RSB_GIT_AUTHOR:
	case RSB_GIT_INDEX:
	case RSB_GIT_PACKS:
	case RSB_GIT_TABLES:
	case RSB_GIT_AWAY:
	case RSB_GIT_NONE:
	case RSB_GIT_REMOTE:
	case RSB_GIT_RERERE:
	case RSB_GIT_HOOK:
	default:
		return judge_whole(what, view, why);
	}
}
