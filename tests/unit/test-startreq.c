/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "sidecar/envd/startreq.h"
#include "tests/unit/unit.h"
#include "util/buf.h"
#include "util/cleanup.h"

static const struct rsb_user user = { .name = "user", .home = "/home/user" };

static struct rsb_json *
parse(const char *text)
{
	struct rsb_json *json;

	ck_assert_int_eq(rsb_json_parse(rsb_bytes_str(text), &json, NULL), 0);
	return json;
}

static const char *
var(const struct rsb_startreq *start, const char *name)
{
	size_t n = strlen(name);

	for (char **word = start->env; *word; word++) {
		if (strncmp(*word, name, n) == 0 && (*word)[n] == '=')
			return *word + n + 1;
	}
	return NULL;
}

START_TEST(takes_arguments_as_they_are)
{
	RSB_CLEANUP(rsb_json_freep)
	struct rsb_json *json =
		parse("{\"process\":{\"cmd\":\"a b\",\"args\":[\"\",\"$x\",\"'\"]},\"tag\":\"t\"}");
	RSB_CLEANUP(rsb_startreq_done) struct rsb_startreq start = { 0 };

	ck_assert_int_eq(rsb_startreq_read(json, &user, NULL, "", &start, NULL), 0);
	ck_assert_str_eq(start.argv[0], "a b");
	ck_assert_str_eq(start.argv[1], "");
	ck_assert_str_eq(start.argv[2], "$x");
	ck_assert_str_eq(start.argv[3], "'");
	ck_assert_ptr_null(start.argv[4]);
	ck_assert_str_eq(start.tag, "t");
	ck_assert_str_eq(start.cwd, "/home/user");
	ck_assert(start.with_stdin);
}
END_TEST

START_TEST(lets_later_variables_win)
{
	RSB_CLEANUP(rsb_json_freep)
	struct rsb_json *json = parse(
		"{\"process\":{\"cmd\":\"x\",\"envs\":{\"B\":\"3\",\"HOME\":\"/h\"}},\"stdin\":false}");
	RSB_CLEANUP(rsb_json_freep) struct rsb_json *env = parse("{\"A\":\"1\",\"B\":\"2\"}");
	RSB_CLEANUP(rsb_startreq_done) struct rsb_startreq start = { 0 };

	ck_assert_int_eq(rsb_startreq_read(json, &user, env, "", &start, NULL), 0);
	ck_assert_str_eq(var(&start, "A"), "1");
	ck_assert_str_eq(var(&start, "B"), "3");
	ck_assert_str_eq(var(&start, "HOME"), "/h");
	ck_assert_str_eq(var(&start, "USER"), "user");
	ck_assert_str_eq(var(&start, "LOGNAME"), "user");
	ck_assert_str_eq(var(&start, "PATH"), RSB_STARTREQ_PATH);
	ck_assert(!start.with_stdin);
}
END_TEST

START_TEST(refuses_what_cannot_be_started)
{
	static const char *const bad[] = {
		"{}",
		"{\"process\":{}}",
		"{\"process\":{\"cmd\":\"\"}}",
		"{\"process\":{\"cmd\":1}}",
		"{\"process\":{\"cmd\":\"x\",\"args\":[1]}}",
		"{\"process\":{\"cmd\":\"x\",\"envs\":{\"A\":1}}}",
		"{\"process\":{\"cmd\":\"x\",\"envs\":{\"\":\"1\"}}}",
		"{\"process\":{\"cmd\":\"x\",\"envs\":{\"A=B\":\"1\"}}}",
		"{\"process\":{\"cmd\":\"x\",\"cwd\":\"~root/x\"}}",
		"{\"process\":{\"cmd\":\"x\"},\"pty\":{\"size\":{\"cols\":80,\"rows\":24}}}",
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(bad); i++) {
		RSB_CLEANUP(rsb_json_freep) struct rsb_json *json = parse(bad[i]);
		RSB_CLEANUP(rsb_startreq_done) struct rsb_startreq start = { 0 };
		struct rsb_diag diag = { "" };

		ck_assert_int_lt(rsb_startreq_read(json, &user, NULL, "", &start, &diag), 0);
		ck_assert(diag.text[0] != '\0');
	}
}
END_TEST

struct path {
	const char *workdir;
	const char *path;
	const char *want; /* NULL: refused */
};

static const struct path paths[] = {
	{ "", "", "/home/user" },
	{ "/w", "", "/w" },
	{ NULL, "~", "/home/user" },
	{ "/w", "~/a", "/home/user/a" },
	{ "/w", "a", "/home/user/a" },
	{ NULL, "/a/../b//c", "/a/../b//c" },
	{ NULL, "~x", NULL },
	{ NULL, "~x/y", NULL },
};

START_TEST(finds_paths_by_the_rules_of_the_service)
{
	char out[PATH_MAX], longest[PATH_MAX + 1];

	for (size_t i = 0; i < RSB_ARRAY_SIZE(paths); i++) {
		int r = rsb_user_path(&user, paths[i].workdir, paths[i].path, out);

		ck_assert_int_eq(r, paths[i].want ? 0 : -EINVAL);
		if (paths[i].want)
			ck_assert_str_eq(out, paths[i].want);
	}
	memset(longest, 'a', PATH_MAX);
	longest[PATH_MAX] = '\0';
	ck_assert_int_eq(rsb_user_path(&user, NULL, longest, out), -ENAMETOOLONG);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		takes_arguments_as_they_are,
		lets_later_variables_win,
		refuses_what_cannot_be_started,
		finds_paths_by_the_rules_of_the_service,
	};

	return unit_run("startreq", tests, RSB_ARRAY_SIZE(tests));
}
