/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "keeper/gitparse.h"
#include "tests/prop/rng.h"
#include "tests/unit/unit.h"

#define N_RANDOM 300

/* As "git config -l -z" prints it: name, newline and value if there is one, NUL. */
static int
collect(void *arg, const struct rsb_git_entry *entry)
{
	struct rsb_buf *out = arg;

	return rsb_buf_printf(out, "%s%s%s%c", entry->name, entry->value ? "\n" : "",
		entry->value ? entry->value : "", 0);
}

static int
parse(const char *text, struct rsb_buf *out)
{
	return rsb_gitparse(rsb_bytes_str(text), collect, out);
}

/* want: entries separated by '|', NULL: refused. */
static void
check_parse(const char *text, const char *want)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	int r = parse(text, &out);

	if (!want) {
		ck_assert_msg(r == -EBADMSG, "%s: %d", text, r);
		return;
	}
	ck_assert_msg(r == 0, "%s: %d", text, r);
	for (size_t i = 0; i < out.size; i++) {
		if (!out.data[i])
			out.data[i] = '|';
	}
	ck_assert_int_eq(rsb_buf_append(&out, "", 1), 0);
	ck_assert_str_eq((const char *)rsb_buf_head(&out), want);
}

static const struct {
	const char *text;
	const char *want;
} rows[] = {
	{ "", "" },
	{ "[core]\n\tbare = false\n", "core.bare\nfalse|" },
	{ "[core] bare = false\n\tx\n", "core.bare\nfalse|core.x|" },
	{ "[CORE]BARE=", "core.bare\n|" },
	{ "[core]a=1;b\nc=2#d\n", "core.a\n1|core.c\n2|" },
	{ "[core]a=\"1;b\nc\"=2\n", NULL },
	{ "[core]\na = \"x # y\" z ; t\n", "core.a\nx # y z|" },
	{ "[core]\na = 1 \\\n  2\\\n3\n", "core.a\n1   23|" },
	{ "[core]\na = \"1 \\\n  2\"\n", "core.a\n1   2|" },
	{ "[core]\n# c \\\nfsmonitor = x\n", "core.fsmonitor\nx|" },
	{ "[core]\na = b # c \\\nfsmonitor = x\n", "core.a\nb|core.fsmonitor\nx|" },
	{ "[core]\na = \\\\\nfsmonitor = x\n", "core.a\n\\|core.fsmonitor\nx|" },
	{ "[core]\na = \\\\\\\nfsmonitor = x\n", "core.a\n\\fsmonitor = x|" },
	{ "[a \"B.c\"]\nd=e\n", "a.B.c.d\ne|" },
	{ "[a.B.c]\nd=e\n", "a.b.c.d\ne|" },
	{ "[a \"x\\\"]\\\\\"]\nd\n", "a.x\"]\\.d|" },
	{ "[a \"x\n\"]\nd\n", NULL },
	{ "[a \"x\"\n]\nd\n", NULL },
	{ "[a \"x\" ]\nd\n", NULL },
	{ "[a  \t \"x\"]d\n", "a.x.d|" },
	{ "[a x]\nd\n", NULL },
	{ "[a\nd\n", NULL },
	{ "[a", NULL },
	{ "[a]]\n", NULL },
	{ "[]\na\n", NULL },
	{ "[a] [b] c=[d]\n", "b.c\n[d]|" },
	{ "a=1\n", NULL },
	{ "[a]\n1=2\n", NULL },
	{ "[a]\nb c\n", NULL },
	{ "[a]\nb.c=1\n", NULL },
	{ "[a]\nb_c=1\n", NULL },
	{ "[a]\nb=\\x\n", NULL },
	{ "[a]\nb=\\t\\n\\b\\\"\n", "a.b\n\t\n\b\"|" },
	{ "[a]\nb=\"c\n", NULL },
	{ "[a]\r\nb = c\r\n", "a.b\nc|" },
	{ "[a]\nb = c\rd=e\n", NULL },
	{ "\xef\xbb\xbf[a]\nb\n", "a.b|" },
	{ "[a]\n\xef\xbb\xbf"
	  "b\n",
		NULL },
	{ "[a]\nb=\xff\xfe\n", "a.b\n\xff\xfe|" },
	{ "[a]\n\vb=1\n", NULL },
	{ "[ \"core\"]\nfsmonitor=x\n", ".core.fsmonitor\nx|" },
	{ "[core \"\"]\nfsmonitor=x\n", "core..fsmonitor\nx|" },
};

START_TEST(reads_what_git_reads)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(rows); i++)
		check_parse(rows[i].text, rows[i].want);
}
END_TEST

START_TEST(refuses_a_nul_and_too_much)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	const struct rsb_bytes nul = { (const uint8_t *)"[a]\nb=\0\n", 8 };
	char *big = calloc(1, RSB_GITPARSE_MAX + 2);

	ck_assert_ptr_nonnull(big);
	memset(big, '\n', RSB_GITPARSE_MAX + 1);
	ck_assert_int_eq(rsb_gitparse(nul, collect, &out), -EBADMSG);
	ck_assert_int_eq(parse(big, &out), -EMSGSIZE);
	big[RSB_GITPARSE_MAX] = '\0';
	ck_assert_int_eq(parse(big, &out), 0);
	free(big);
}
END_TEST

static int
note_range(void *arg, const struct rsb_git_entry *entry)
{
	size_t *range = arg;

	range[0] = entry->begin;
	range[1] = entry->end;
	return 7;
}

START_TEST(tells_where_an_entry_is)
{
	size_t range[2];

	ck_assert_int_eq(
		rsb_gitparse(rsb_bytes_str("[a] b = \\\n c # d\ne\n"), note_range, range), 7);
	ck_assert_uint_eq(range[0], 4);
	ck_assert_uint_eq(range[1], 16);
	ck_assert_int_eq(rsb_gitparse(rsb_bytes_str("[a]\nb"), note_range, range), 7);
	ck_assert_uint_eq(range[0], 4);
	ck_assert_uint_eq(range[1], 5);
}
END_TEST

/* What git itself reads: its output, or -EBADMSG. */
static int
ask_git(const char *path, const char *text, struct rsb_buf *out)
{
	char command[256];
	uint8_t *tail;
	size_t n;
	FILE *file = fopen(path, "we");
	int status;

	ck_assert_ptr_nonnull(file);
	(void)fputs(text, file);
	(void)fclose(file);
	(void)snprintf(command, sizeof(command), "git config -f %s -l -z 2>/dev/null", path);
	file = popen(command, "re");
	ck_assert_ptr_nonnull(file);
	do {
		ck_assert_int_eq(rsb_buf_reserve(out, 4096, &tail), 0);
		n = fread(tail, 1, 4096, file);
		rsb_buf_commit(out, n);
	} while (n);
	status = pclose(file);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	return status == 0 ? 0 : -EBADMSG;
}

/* What we accept git accepts, and reads the same in it. */
static bool
agrees(const char *path, const char *text)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf ours = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf theirs = { 0 };
	int r = parse(text, &ours);
	int g;

	if (r == -EBADMSG)
		return true;
	ck_assert_int_eq(r, 0);
	g = ask_git(path, text, &theirs);
	if (g == -ENOENT)
		return false;
	ck_assert_msg(g == 0, "git refuses: %s", text);
	ck_assert_msg(
		rsb_buf_len(&ours) == rsb_buf_len(&theirs) &&
			(!rsb_buf_len(&ours) || memcmp(rsb_buf_head(&ours), rsb_buf_head(&theirs),
							rsb_buf_len(&ours)) == 0),
		"git reads otherwise: %s", text);
	return true;
}

START_TEST(agrees_with_git)
{
	static const char *const words[] = { "[core]", "[a \"b\"]", "[a.b]", "\n", "\n", "x", "=",
		"y z", "\"", "\\", "\\\n", "\\\"", "#", ";", " ", "\t", "\r\n", "fsmonitor", "[",
		"]", "\"\"" };
	struct rng rng;
	char path[] = "/tmp/rsb-gitparse.XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	rng_init(&rng);
	for (size_t i = 0; i < RSB_ARRAY_SIZE(rows); i++) {
		if (!agrees(path, rows[i].text))
			break;
	}
	for (size_t i = 0; i < N_RANDOM; i++) {
		char text[512] = "[c]\n";
		size_t n = 1 + rng_below(&rng, 24);

		while (n--)
			(void)strcat(text, words[rng_below(&rng, RSB_ARRAY_SIZE(words))]);
		if (!agrees(path, text))
			break;
	}
	(void)unlink(path);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		reads_what_git_reads,
		refuses_a_nul_and_too_much,
		tells_where_an_entry_is,
		agrees_with_git,
	};

	return unit_run("gitparse", tests, RSB_ARRAY_SIZE(tests));
}
