/* SPDX-License-Identifier: MIT */
#include "keeper/gitconfig.h"

#include <string.h>
#include <strings.h>

bool
rsb_gitconfig_is_config(const char *path)
{
	const char *git = strncmp(path, ".git/", 5) == 0 ? path : strstr(path, "/.git/");
	const char *base = strrchr(path, '/');

	return git && base &&
	       (strcmp(base, "/config") == 0 || strcmp(base, "/config.worktree") == 0);
}

static struct rsb_bytes
skip_blanks(struct rsb_bytes line)
{
	while (line.size && (line.data[0] == ' ' || line.data[0] == '\t')) {
		line.data++;
		line.size--;
	}
	return line;
}

static bool
begins_with(struct rsb_bytes line, const char *word)
{
	size_t n = strlen(word);

	return line.size >= n && strncasecmp((const char *)line.data, word, n) == 0;
}

/* Where "user:password@" of the first URL in the line begins and ends; false: there is none. */
static bool
find_userinfo(struct rsb_bytes line, size_t *ret_begin, size_t *ret_end)
{
	const uint8_t *scheme = memmem(line.data, line.size, "://", 3);
	size_t begin;

	if (!scheme)
		return false;
	begin = (size_t)(scheme - line.data) + 3;
	/* ssh URLs name a user, which is no secret and is needed. */
	if (memmem(line.data, begin, "ssh", 3))
		return false;
	for (size_t i = begin; i < line.size; i++) {
		if (line.data[i] == '/' || line.data[i] == ' ' || line.data[i] == '"')
			return false;
		if (line.data[i] == '@') {
			*ret_begin = begin;
			*ret_end = i + 1;
			return true;
		}
	}
	return false;
}

static int
copy_line(struct rsb_bytes line, struct rsb_buf *out, bool *cut)
{
	size_t begin;
	size_t end;
	int r;

	if (!find_userinfo(line, &begin, &end))
		return rsb_buf_append(out, line.data, line.size);
	*cut = true;
	r = rsb_buf_append(out, line.data, begin);
	return r < 0 ? r : rsb_buf_append(out, line.data + end, line.size - end);
}

int
rsb_gitconfig_strip(struct rsb_bytes text, struct rsb_buf *out, bool *ret_cut)
{
	bool in_credential = false;
	bool continued = false; /* the line before ended in a backslash */
	bool drop = false;
	bool cut = false;

	while (text.size) {
		const uint8_t *end = memchr(text.data, '\n', text.size);
		size_t size = end ? (size_t)(end - text.data) + 1 : text.size;
		struct rsb_bytes line = { text.data, size };
		struct rsb_bytes word = skip_blanks(line);
		int r = 0;

		if (!continued) {
			if (word.size && word.data[0] == '[')
				in_credential = begins_with(word, "[credential");
			drop = in_credential || begins_with(word, "extraheader") ||
			       (word.size && word.data[0] == '[' &&
				       memmem(word.data, word.size, "extraheader", 11));
		}
		continued = size >= 2 && line.data[size - 1] == '\n' && line.data[size - 2] == '\\';
		if (drop)
			cut = true;
		else
			r = copy_line(line, out, &cut);
		if (r < 0)
			return r;
		text.data += size;
		text.size -= size;
	}
	*ret_cut = cut;
	return 0;
}
