/* SPDX-License-Identifier: MIT */
#include "sidecar/local/head.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "util/cleanup.h"
#include "util/str.h"

/* RFC 9110, 5.6.2 */
static bool
is_token(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("!#$%&'*+-.^_`|~", *s))
			return false;
	}
	return true;
}

static bool
is_value(const char *s)
{
	for (; *s; s++) {
		if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
			return false;
	}
	return true;
}

/* "HTTP/1.1 101 Switching Protocols" */
static int
parse_status(const char *line, unsigned int *ret_status)
{
	static const char version[] = "HTTP/1.1 ";
	const char *digits = line + sizeof(version) - 1;

	if (strncmp(line, version, sizeof(version) - 1) != 0)
		return -EBADMSG;
	for (int i = 0; i < 3; i++) {
		if (!isdigit((unsigned char)digits[i]))
			return -EBADMSG;
	}
	if (digits[3] != ' ' && digits[3] != '\0')
		return -EBADMSG;
	*ret_status = (unsigned int)((digits[0] - '0') * 100 + (digits[1] - '0') * 10 +
				     (digits[2] - '0'));
	return *ret_status >= 100 && *ret_status <= 599 ? 0 : -EBADMSG;
}

static int
parse_line(struct rsb_head *head, char *line)
{
	struct rsb_head_line *out = &head->lines[head->n_line];
	char *colon = strchr(line, ':');

	if (head->n_line == RSB_HEAD_LINES_MAX || !colon)
		return -EBADMSG;
	*colon = '\0';
	out->name = line;
	out->value = colon + 1 + strspn(colon + 1, " \t");
	if (!is_token(out->name) || !is_value(out->value))
		return -EBADMSG;
	head->n_line++;
	return 0;
}

/* Cuts text, which ends in an empty line, at each CRLF. */
static int
parse_lines(struct rsb_head *head)
{
	char *line = head->text;
	bool first = true;
	int r;

	for (;;) {
		char *end = strstr(line, "\r\n");

		if (!end)
			return -EBADMSG;
		*end = '\0';
		if (line[0] == '\0')
			return first ? -EBADMSG : 0;
		r = first ? parse_status(line, &head->status) : parse_line(head, line);
		if (r < 0)
			return r;
		first = false;
		line = end + 2;
	}
}

int
rsb_head_parse(struct rsb_bytes in, struct rsb_head *ret_head)
{
	RSB_CLEANUP(rsb_head_done) struct rsb_head head = { 0 };
	const uint8_t *end = in.size ? memmem(in.data, in.size, "\r\n\r\n", 4) : NULL;
	int r;

	if (!end)
		return in.size >= RSB_HEAD_MAX ? -EBADMSG : 0;
	head.size = (size_t)(end - in.data) + 4;
	if (head.size > RSB_HEAD_MAX || memchr(in.data, '\0', head.size))
		return -EBADMSG;
	head.text = rsb_str_dup((struct rsb_bytes){ in.data, head.size });
	if (!head.text)
		return -ENOMEM;
	r = parse_lines(&head);
	if (r < 0)
		return r;
	*ret_head = head;
	head.text = NULL;
	return 1;
}

void
rsb_head_done(struct rsb_head *head)
{
	free(head->text);
	head->text = NULL;
	head->n_line = 0;
}

const char *
rsb_head_get(const struct rsb_head *head, const char *name)
{
	for (size_t i = 0; i < head->n_line; i++) {
		if (strcasecmp(head->lines[i].name, name) == 0)
			return head->lines[i].value;
	}
	return NULL;
}
