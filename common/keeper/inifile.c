/* SPDX-License-Identifier: MIT */
#include "keeper/inifile.h"

#include <errno.h>
#include <string.h>

#include <ini.h>

#include "util/cleanup.h"
#include "util/str.h"

#define KEY_MAX 48 /* inih cuts at 49 */

struct parse {
	const char *name;
	const char *pos; /* of what was not read yet */
	unsigned int line;
	int (*fn)(void *arg, const struct rsb_inifile_entry *entry, struct rsb_diag *diag);
	void *arg;
	struct rsb_diag *diag;
	int r;
};

static int
refuse(struct parse *parse, const char *why)
{
	parse->r = rsb_diag_set(
		parse->diag, -EINVAL, "%s, line %u: %s", parse->name, parse->line, why);
	return parse->r;
}

/* What inih would read otherwise than it stands there. */
static int
check_line(struct parse *parse, const char *line, size_t size)
{
	size_t key_size = strcspn(line, "=:\n");
	size_t i;

	if (size > RSB_INIFILE_LINE_MAX)
		return refuse(parse, "the line is too long");
	if (line[0] == ';' || line[0] == '#')
		return 0;
	if (line[0] == '[' && !memchr(line, ']', size))
		return refuse(parse, "the section's bracket is not closed");
	if (line[0] == '[' && strcspn(line, "]\n") > RSB_INIFILE_SECTION_MAX)
		return refuse(parse, "the section's name is too long");
	if (line[0] != '[' && key_size < size && key_size > KEY_MAX)
		return refuse(parse, "the key is too long");
	for (i = 1; i < size; i++)
		if (line[i] == ';' && (line[i - 1] == ' ' || line[i - 1] == '\t'))
			return refuse(parse, "a comment needs a line of its own");
	return 0;
}

/* As fgets(3), for inih. */
static char *
read_line(char *out, int size, void *arg)
{
	struct parse *parse = arg;
	const char *line = parse->pos;
	size_t n = strcspn(line, "\n");

	if (parse->r < 0 || !*line)
		return NULL;
	parse->line++;
	parse->pos = line + n + (line[n] == '\n');
	for (; n > 0 && (*line == ' ' || *line == '\t'); n--)
		line++;
	if (check_line(parse, line, n) < 0 || n + 1 >= (size_t)size)
		return NULL;
	memcpy(out, line, n);
	out[n] = '\n';
	out[n + 1] = '\0';
	return out;
}

static int
on_entry(void *arg, const char *section, const char *key, const char *value)
{
	struct parse *parse = arg;
	rsb_autofree char *name = NULL;
	struct rsb_inifile_entry entry = {
		.section = section, .value = value, .line = parse->line
	};
	struct rsb_diag why = { 0 };
	size_t n = strlen(key);

	if (parse->r < 0)
		return 0;
	entry.add = n > 0 && key[n - 1] == '+';
	n -= entry.add ? 1 : 0;
	while (n > 0 && (key[n - 1] == ' ' || key[n - 1] == '\t'))
		n--;
	name = rsb_str_dup((struct rsb_bytes){ .data = (const uint8_t *)key, .size = n });
	if (!name) {
		parse->r = -ENOMEM;
		return 0;
	}
	entry.key = name;
	parse->r = parse->fn(parse->arg, &entry, &why);
	if (parse->r < 0 && why.text[0])
		(void)rsb_diag_set(parse->diag, parse->r, "%s, line %u: %s", parse->name,
			parse->line, why.text);
	return parse->r == 0;
}

int
rsb_inifile_parse(const char *name, const char *text,
	int (*fn)(void *arg, const struct rsb_inifile_entry *entry, struct rsb_diag *diag),
	void *arg, struct rsb_diag *diag)
{
	struct parse parse = { .name = name, .pos = text, .fn = fn, .arg = arg, .diag = diag };
	int line;

	line = ini_parse_stream(read_line, &parse, on_entry, &parse);
	if (parse.r < 0)
		return parse.r;
	if (line == 0)
		return 0;
	parse.line = line > 0 ? (unsigned int)line : 0;
	return refuse(&parse, "neither a [section] nor \"key = value\"");
}
