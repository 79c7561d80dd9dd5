/* SPDX-License-Identifier: MIT */
#include "util/ignore.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "util/str.h"

#define PART_MAX 256 /* bytes of one part between slashes, with its NUL: no name is longer */

struct pattern {
	char *text; /* without "!", leading and trailing slash */
	bool negated;
	bool dirs_only;
	bool anchored; /* against the whole path, else against the last name */
};

struct rsb_ignore {
	struct pattern *patterns;
	size_t n;
	size_t cap;
};

int
rsb_ignore_new(struct rsb_ignore **ret_ignore)
{
	struct rsb_ignore *ignore = rsb_new(struct rsb_ignore);

	if (!ignore)
		return -ENOMEM;
	*ret_ignore = ignore;
	return 0;
}

void
rsb_ignore_free(struct rsb_ignore *ignore)
{
	if (!ignore)
		return;
	for (size_t i = 0; i < ignore->n; i++)
		free(ignore->patterns[i].text);
	free(ignore->patterns);
	free(ignore);
}

/* Trailing blanks do not count unless a backslash stands before them (gitignore(5)). */
static struct rsb_bytes
trim(struct rsb_bytes p)
{
	while (p.size && p.data[p.size - 1] == '\r')
		p.size--;
	while (p.size && p.data[p.size - 1] == ' ' && (p.size < 2 || p.data[p.size - 2] != '\\'))
		p.size--;
	return p;
}

static size_t
count_any_depth(const char *text)
{
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, "**")); p += 2)
		n++;
	return n;
}

/* The end of a bracket expression that begins at p, in its part of the path; NULL: it has none. */
static const char *
bracket_end(const char *p)
{
	p += p[1] == '!' || p[1] == '^' ? 2 : 1;
	/* The first of them may be a bracket itself. */
	for (const char *first = p; *p && *p != '/'; p++) {
		if (*p == ']' && p > first)
			return p;
		if (*p == '\\' && p[1])
			p++;
		else if (*p == '[' && p[1] && strchr(":.=", p[1])) {
			const char *end = strchr(p + 2, ']');

			p = end && end[-1] == p[1] ? end : p;
		}
	}
	return NULL;
}

static bool
closes_brackets(const char *text)
{
	for (const char *p = text; p && *p; p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (*p == '[' && !(p = bracket_end(p)))
			return false;
	}
	return true;
}

static int
append(struct rsb_ignore *ignore, const struct pattern *pattern)
{
	if (ignore->n == RSB_IGNORE_PATTERNS_MAX)
		return -ENOSPC;
	if (ignore->n == ignore->cap) {
		size_t cap = ignore->cap ? ignore->cap * 2 : 16;
		struct pattern *grown =
			reallocarray(ignore->patterns, cap, sizeof *ignore->patterns);

		if (!grown)
			return -ENOMEM;
		ignore->patterns = grown;
		ignore->cap = cap;
	}
	ignore->patterns[ignore->n++] = *pattern;
	return 0;
}

int
rsb_ignore_add(struct rsb_ignore *ignore, struct rsb_bytes text)
{
	struct rsb_bytes p = trim(text);
	struct pattern pattern = { 0 };
	int r;

	if (p.size == 0 || p.data[0] == '#')
		return 0;
	if (p.size > RSB_IGNORE_PATTERN_MAX || memchr(p.data, '\0', p.size))
		return -EINVAL;
	if (p.data[0] == '!') {
		pattern.negated = true;
		p.data++;
		p.size--;
	}
	if (p.size && p.data[p.size - 1] == '/') {
		pattern.dirs_only = true;
		p.size--;
	}
	pattern.anchored = p.size && memchr(p.data, '/', p.size);
	if (p.size && p.data[0] == '/') {
		p.data++;
		p.size--;
	}
	if (p.size == 0)
		return 0;
	pattern.text = rsb_str_dup(p);
	if (!pattern.text)
		return -ENOMEM;
	r = count_any_depth(pattern.text) > RSB_IGNORE_DEEP_MAX || !closes_brackets(pattern.text)
		    ? -EINVAL
		    : append(ignore, &pattern);
	if (r < 0)
		free(pattern.text);
	return r;
}

int
rsb_ignore_add_text(struct rsb_ignore *ignore, struct rsb_bytes text)
{
	while (text.size) {
		const uint8_t *end = memchr(text.data, '\n', text.size);
		size_t size = end ? (size_t)(end - text.data) : text.size;
		int r = rsb_ignore_add(ignore, (struct rsb_bytes){ text.data, size });

		if (r < 0)
			return r;
		size += end != NULL;
		text.data += size;
		text.size -= size;
	}
	return 0;
}

/* One part of a pattern against one name. Runs in the "C" locale: bytes. */
static bool
match_part(const char *pattern, size_t pattern_size, const char *name, size_t name_size)
{
	char p[RSB_IGNORE_PATTERN_MAX + 1];
	char n[PART_MAX];

	if (name_size >= sizeof n)
		return false;
	memcpy(p, pattern, pattern_size);
	p[pattern_size] = '\0';
	memcpy(n, name, name_size);
	n[name_size] = '\0';
	return fnmatch(p, n, 0) == 0;
}

static bool
match_path(const char *pattern, const char *path)
{
	for (;;) {
		size_t pattern_size = strcspn(pattern, "/");
		size_t path_size = strcspn(path, "/");

		if (pattern_size == 2 && strncmp(pattern, "**", 2) == 0) {
			if (pattern[2] == '\0')
				return true;
			for (; path; path = strchr(path, '/') ? strchr(path, '/') + 1 : NULL)
				if (match_path(pattern + 3, path))
					return true;
			return false;
		}
		if (!match_part(pattern, pattern_size, path, path_size))
			return false;
		pattern += pattern_size;
		path += path_size;
		if (!*pattern || !*path)
			return !*pattern && !*path;
		pattern++;
		path++;
	}
}

bool
rsb_ignore_match(const struct rsb_ignore *ignore, const char *path, bool is_dir)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	for (size_t i = ignore->n; i-- > 0;) {
		const struct pattern *pattern = &ignore->patterns[i];

		if (pattern->dirs_only && !is_dir)
			continue;
		if (pattern->anchored ? match_path(pattern->text, path)
				      : match_part(pattern->text, strlen(pattern->text), base,
						strlen(base)))
			return !pattern->negated;
	}
	return false;
}
