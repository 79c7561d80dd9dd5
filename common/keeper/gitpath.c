/* SPDX-License-Identifier: MIT */
#include "keeper/gitpath.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/cleanup.h"
#include "util/str.h"

#define NOWHERE "held-back/.git" /* what is not there, in a worktree's directory */

/* The directory that is up directories above the file, below the root; the root if not known. */
static struct rsb_bytes
dir_of(const struct rsb_gitallow *what, size_t up)
{
	struct rsb_bytes dir = rsb_bytes_str(what->path ? what->path : "");

	for (; up; up--) {
		while (dir.size && dir.data[dir.size - 1] != '/')
			dir.size--;
		while (dir.size && dir.data[dir.size - 1] == '/')
			dir.size--;
	}
	return dir;
}

/* "/mount/dir/path", of which each part but the first may be empty. */
static char *
join(const char *mountpoint, struct rsb_bytes dir, struct rsb_bytes path)
{
	return rsb_str_printf("%s%s%.*s%s%.*s", mountpoint, *mountpoint ? "/" : "", (int)dir.size,
		(const char *)dir.data, dir.size ? "/" : "", (int)path.size,
		(const char *)path.data);
}

/*
 * path, which is relative to dir, as git here is to see it: *ret_path, the caller's, absolute.
 * -EACCES: it leads out. What is relative and what is the sandbox's is from the root on afterwards.
 */
static int
map(const struct rsb_gitallow *what, struct rsb_bytes dir, struct rsb_bytes path, char **ret_path)
{
	const struct rsb_target_place root = {
		.workspace = what->place.workspace,
		.mountpoint = what->place.mountpoint,
	};
	const bool is_absolute = path.size && path.data[0] == '/';
	rsb_autofree char *full = NULL;
	rsb_autofree char *mapped = NULL;
	int r;

	if (!path.size || memchr(path.data, 0, path.size))
		return -EACCES;
	if (is_absolute) {
		r = rsb_target_map(&root, path, &mapped);
	} else {
		full = join("", dir, path);
		if (!full)
			return -ENOMEM;
		r = rsb_target_map(&root, rsb_bytes_str(full), &mapped);
	}
	if (r < 0)
		return r;
	if (*mapped != '/') {
		free(rsb_steal(&full));
		full = join(root.mountpoint, rsb_bytes_str(""), rsb_bytes_str(mapped));
		if (!full)
			return -ENOMEM;
		free(mapped);
		mapped = rsb_steal(&full);
	}
	/* Each is a line of its file. */
	if (strchr(mapped, '\n'))
		return -EACCES;
	*ret_path = rsb_steal(&mapped);
	return 0;
}

/* ---- alternates ---- */

static int
unescape(uint8_t c)
{
	static const char from[] = "abfnrtv\\\"";
	static const char to[] = "\a\b\f\n\r\t\v\\\"";
	const char *at = c ? strchr(from, c) : NULL;

	return at ? to[at - from] : -1;
}

/* The byte of three octal digits; -1: they are none. */
static int
octal(const uint8_t *data, size_t size)
{
	int c = 0;

	if (size < 3 || data[0] > '3')
		return -1;
	for (size_t i = 0; i < 3; i++) {
		if (data[i] < '0' || data[i] > '7')
			return -1;
		c = c * 8 + data[i] - '0';
	}
	return c;
}

/*
 * A line that begins with a quote, as C has them: to the quote at its end and no further, or git
 * would go on behind that as if on another line. -EACCES: it is no such.
 */
static int
unquote(struct rsb_bytes line, struct rsb_buf *out)
{
	int r = 0;

	for (size_t i = 1; i < line.size && r >= 0; i++) {
		int c = line.data[i];
		uint8_t byte;

		if (c == '"')
			return i + 1 == line.size ? 0 : -EACCES;
		if (c == '\\') {
			if (++i == line.size)
				return -EACCES;
			c = unescape(line.data[i]);
			if (c < 0) {
				c = octal(line.data + i, line.size - i);
				i += 2;
			}
		}
		if (c < 0)
			return -EACCES;
		byte = (uint8_t)c;
		r = rsb_buf_append(out, &byte, 1);
	}
	return r < 0 ? r : -EACCES;
}

/* 1: another line is given; 0: it is as it is; -EACCES: it leads out. */
static int
give_line(const struct rsb_gitallow *what, struct rsb_bytes line, struct rsb_buf *view)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf plain = { .max = RSB_GITALLOW_MAX };
	const struct rsb_bytes whole = line;
	const bool is_ended = line.size && line.data[line.size - 1] == '\n';
	rsb_autofree char *mapped = NULL;
	int r = 0;

	line.size -= is_ended;
	if (!line.size || line.data[0] == '#')
		return rsb_buf_append(view, whole.data, whole.size);
	if (line.data[0] == '"') {
		r = unquote(line, &plain);
		line = rsb_buf_view(&plain);
	}
	if (r >= 0)
		r = map(what, dir_of(what, 2), line, &mapped);
	if (r < 0)
		return r;
	if (rsb_str_is(line, mapped))
		return rsb_buf_append(view, whole.data, whole.size);
	r = rsb_buf_printf(view, "%s\n", mapped);
	return r < 0 ? r : 1;
}

/* The trusted copy instead, if there is one. */
static int
hold(const struct rsb_gitallow *what, struct rsb_buf *view, char *why, const char *text)
{
	int r = 0;

	(void)snprintf(why, RSB_GITALLOW_WHY_MAX, "%s", text);
	if (what->trusted) {
		rsb_buf_clear(view);
		r = rsb_buf_append(view, what->trusted->data, what->trusted->size);
	}
	return r < 0 ? r : RSB_GITALLOW_HELD;
}

int
rsb_gitpath_alternates(const struct rsb_gitallow *what, struct rsb_buf *view,
	char why[static RSB_GITALLOW_WHY_MAX])
{
	struct rsb_bytes left = what->text;
	bool held = false;
	bool mapped = false;
	int r;

	/* Git's reader ends there, another's may not. */
	if (left.size && memchr(left.data, 0, left.size))
		return hold(what, view, why, "it cannot be read as a list of directories");
	while (left.size) {
		const uint8_t *end = memchr(left.data, '\n', left.size);
		struct rsb_bytes line = left;

		line.size = end ? (size_t)(end - left.data) + 1 : left.size;
		left.data += line.size;
		left.size -= line.size;
		r = give_line(what, line, view);
		if (r == -ENOMEM)
			return r;
		held |= r < 0;
		mapped |= r > 0;
	}
	if (held)
		return hold(what, view, why, "objects outside the mount");
	if (mapped)
		return RSB_GITALLOW_MAPPED;
	rsb_buf_clear(view);
	return RSB_GITALLOW_AS_IS;
}

/* ---- gitdir ---- */

/* As git does: a blank behind ".." would make another name of it. */
static struct rsb_bytes
cut_blanks(struct rsb_bytes text)
{
	while (text.size && strchr(" \t\n\v\f\r", text.data[text.size - 1]))
		text.size--;
	return text;
}

int
rsb_gitpath_gitdir(const struct rsb_gitallow *what, struct rsb_buf *view,
	char why[static RSB_GITALLOW_WHY_MAX])
{
	const struct rsb_bytes dir = dir_of(what, 1);
	const struct rsb_bytes path = cut_blanks(what->text);
	rsb_autofree char *mapped = NULL;
	rsb_autofree char *nowhere = NULL;
	int r;

	/* git takes it for what it is: none. */
	if (!what->text.size)
		return RSB_GITALLOW_AS_IS;
	r = path.size && memchr(path.data, '\n', path.size) ? -EACCES
							    : map(what, dir, path, &mapped);
	if (r == -ENOMEM)
		return r;
	if (r >= 0 && rsb_str_is(path, mapped))
		return RSB_GITALLOW_AS_IS;
	if (r >= 0) {
		r = rsb_buf_printf(view, "%s\n", mapped);
		return r < 0 ? r : RSB_GITALLOW_MAPPED;
	}
	r = map(what, dir, rsb_bytes_str(NOWHERE), &nowhere);
	if (r >= 0 && what->path && *what->place.mountpoint)
		r = rsb_buf_printf(view, "%s\n", nowhere);
	return r == -ENOMEM ? r : hold(what, view, why, "a worktree outside the mount");
}

/* ---- what goes by .git ---- */

bool
rsb_gitpath_has_git(struct rsb_bytes path)
{
	while (path.size) {
		const uint8_t *slash = memchr(path.data, '/', path.size);
		const size_t n = slash ? (size_t)(slash - path.data) : path.size;

		if (n == 4 && strncasecmp((const char *)path.data, ".git", n) == 0)
			return true;
		path.data += n + (slash != NULL);
		path.size -= n + (slash != NULL);
	}
	return false;
}

/* It has ".." at its beginning alone, or is absolute. */
bool
rsb_gitpath_is_worktree(const struct rsb_gitallow *what, const char *value)
{
	const size_t n_root = strlen(what->place.mountpoint);
	size_t up = 1;

	if (!what->path)
		return false;
	if (*value == '/')
		return strncmp(value, what->place.mountpoint, n_root) == 0 &&
		       !rsb_gitpath_has_git(rsb_bytes_str(value + n_root));
	while (strncmp(value, "../", 3) == 0 || strcmp(value, "..") == 0) {
		value += value[2] ? 3 : 2;
		up++;
	}
	return up > 1 && !rsb_gitpath_has_git(dir_of(what, up)) &&
	       !rsb_gitpath_has_git(rsb_bytes_str(value));
}
