/* SPDX-License-Identifier: MIT */
#include "keeper/gitparse.h"

#include <errno.h>
#include <string.h>

#define END (-1) /* of the text; git's reader makes it a newline */

struct parse {
	struct rsb_bytes text;
	size_t pos;
	bool ended;
	struct rsb_buf name; /* the section's part, then the entry's */
	struct rsb_buf value;
	size_t n_section; /* bytes of name that are the section's */
	size_t head_begin;
	size_t head_end;
	bool has_sub;
	size_t sub_at;
	rsb_gitparse_fn fn;
	void *arg;
};

/* As in git the locale plays no part. */
static bool
is_alpha(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_key(int c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '-';
}

static bool
is_blank(int c)
{
	return c == ' ' || c == '\t';
}

static int
lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* The next byte; a newline and ended at the end. */
static int
next(struct parse *p)
{
	int c;

	if (p->pos == p->text.size) {
		p->ended = true;
		return '\n';
	}
	c = p->text.data[p->pos++];
	if (c == '\r' && p->pos < p->text.size && p->text.data[p->pos] == '\n')
		c = p->text.data[p->pos++];
	return c;
}

static int
put(struct rsb_buf *buf, int c)
{
	const uint8_t byte = (uint8_t)c;

	return rsb_buf_append(buf, &byte, 1);
}

/* ---- section headers ---- */

/* [section "subsection"], after the first blank. */
static int
parse_sub(struct parse *p)
{
	int c;
	int r;

	do
		c = next(p);
	while (is_blank(c));
	if (c != '"')
		return -EBADMSG;
	r = put(&p->name, '.');
	/* What follows the first dot, also where the old form came before. */
	if (!p->has_sub)
		p->sub_at = rsb_buf_len(&p->name);
	p->has_sub = true;
	while (r >= 0) {
		c = next(p);
		if (c == '"')
			break;
		if (c == '\\')
			c = next(p);
		if (c == '\n')
			return -EBADMSG;
		r = put(&p->name, c);
	}
	if (r < 0)
		return r;
	return next(p) == ']' ? 0 : -EBADMSG;
}

static int
close_section(struct parse *p)
{
	int r = put(&p->name, '.');

	p->n_section = rsb_buf_len(&p->name);
	p->head_end = p->pos;
	return r;
}

/* After the '['. */
static int
parse_section(struct parse *p)
{
	int c;
	int r;

	rsb_buf_clear(&p->name);
	p->has_sub = false;
	p->head_begin = p->pos - 1;
	for (;;) {
		c = next(p);
		if (c == ']' && !p->ended)
			return rsb_buf_len(&p->name) ? close_section(p) : -EBADMSG;
		if (is_blank(c)) {
			r = parse_sub(p);
			return r < 0 ? r : close_section(p);
		}
		if (!is_key(c) && c != '.')
			return -EBADMSG;
		/* [section.subsection], the old form. */
		if (c == '.' && !p->has_sub) {
			p->has_sub = true;
			p->sub_at = rsb_buf_len(&p->name) + 1;
		}
		r = put(&p->name, lower(c));
		if (r < 0)
			return r;
	}
}

/* ---- values ---- */

static int
unescape(int c)
{
	switch (c) {
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return c;
	default:
		return END;
	}
}

/* After a backslash. */
static int
parse_escape(struct parse *p)
{
	int c = next(p);

	if (c == '\n')
		return p->ended ? -EBADMSG : 0;
	c = unescape(c);
	return c == END ? -EBADMSG : put(&p->value, c);
}

static int
put_blanks(struct parse *p, size_t n)
{
	int r = 0;

	for (; n > 0 && r >= 0; n--)
		r = put(&p->value, ' ');
	return r;
}

/* After the '=', to the end of the line; blanks at its end are none of the value's. */
static int
parse_value(struct parse *p)
{
	bool quoted = false;
	bool comment = false;
	size_t blanks = 0;
	int r = 0;

	while (r >= 0) {
		int c = next(p);

		if (c == '\n')
			return quoted ? -EBADMSG : put(&p->value, 0);
		if (comment)
			continue;
		if (is_blank(c) && !quoted) {
			blanks += rsb_buf_len(&p->value) ? 1 : 0;
			continue;
		}
		if (!quoted && (c == ';' || c == '#')) {
			comment = true;
			continue;
		}
		r = put_blanks(p, blanks);
		blanks = 0;
		if (r < 0)
			break;
		if (c == '\\')
			r = parse_escape(p);
		else if (c == '"')
			quoted = !quoted;
		else
			r = put(&p->value, c);
	}
	return r;
}

/* ---- entries ---- */

static int
tell(struct parse *p, size_t key_at, size_t begin, bool has_value)
{
	const char *name = (const char *)rsb_buf_head(&p->name);
	const struct rsb_git_entry entry = {
		.name = name,
		.sub = p->has_sub ? name + p->sub_at : NULL,
		.sub_size = p->has_sub ? key_at - 1 - p->sub_at : 0,
		.key = name + key_at,
		.value = has_value ? (const char *)rsb_buf_head(&p->value) : NULL,
		.begin = begin,
		.end = p->ended ? p->pos : p->pos - 1,
		.head_begin = p->head_begin,
		.head_end = p->head_end,
	};

	return p->fn(p->arg, &entry);
}

/* c: the first byte of the key. */
static int
parse_entry(struct parse *p, int c)
{
	size_t begin = p->pos - 1;
	bool has_value = false;
	int r = 0;

	/* Before any header an entry is of no section: git refuses it. */
	if (!p->n_section)
		return -EBADMSG;
	p->name.size = p->name.off + p->n_section;
	for (; is_key(c) && r >= 0; c = next(p))
		r = put(&p->name, lower(c));
	while (is_blank(c))
		c = next(p);
	if (r >= 0)
		r = put(&p->name, 0);
	rsb_buf_clear(&p->value);
	if (r >= 0 && c != '\n') {
		has_value = true;
		r = c == '=' ? parse_value(p) : -EBADMSG;
	}
	return r < 0 ? r : tell(p, p->n_section, begin, has_value);
}

static int
parse_all(struct parse *p)
{
	bool comment = false;
	int r = 0;

	/* A byte order mark. */
	if (p->text.size >= 3 && memcmp(p->text.data, "\xef\xbb\xbf", 3) == 0)
		p->pos = 3;
	while (r == 0) {
		int c = next(p);

		if (c == '\n') {
			if (p->ended)
				return 0;
			comment = false;
		} else if (comment || is_blank(c)) {
			continue;
		} else if (c == '#' || c == ';') {
			comment = true;
		} else if (c == '[') {
			r = parse_section(p);
		} else if (is_alpha(c)) {
			r = parse_entry(p, c);
		} else {
			return -EBADMSG;
		}
	}
	return r;
}

/* What readers of other makes might take otherwise than git does. */
static bool
is_plain(struct rsb_bytes text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == 0)
			return false;
		if (text.data[i] == '\r' && (i + 1 == text.size || text.data[i + 1] != '\n'))
			return false;
	}
	return true;
}

int
rsb_gitparse(struct rsb_bytes text, rsb_gitparse_fn fn, void *arg)
{
	struct parse p = { .text = text, .fn = fn, .arg = arg };
	int r;

	if (text.size > RSB_GITPARSE_MAX)
		return -EMSGSIZE;
	if (!is_plain(text))
		return -EBADMSG;
	p.name.max = p.value.max = RSB_GITPARSE_MAX + 8;
	r = parse_all(&p);
	rsb_buf_done(&p.name);
	rsb_buf_done(&p.value);
	return r;
}
