/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "keeper/secretlike.h"
#include "tests/unit/unit.h"

START_TEST(tells_them_by_their_names)
{
	static const struct {
		const char *path;
		bool is_dir;
		bool found;
	} cases[] = {
		{ ".env", false, true },
		{ ".env", true, false },
		{ "a/b/.env", false, true },
		{ ".env.local", false, true },
		{ ".env.example", false, false },
		{ ".env.local.sample", false, false },
		{ ".envrc", false, false },
		{ "x.env", false, false },
		{ ".npmrc", false, true },
		{ "a/.npmrc", false, true },
		{ ".ssh", true, true },
		{ ".ssh", false, false },
		{ "a/.aws", true, true },
		{ ".ssh/id_rsa", false, false }, /* with its directory */
		{ "a/.ssh/sub/.env", false, false },
		{ "x.ssh/id_rsa", false, true },
		{ "deploy/id_ed25519", false, true },
		{ "id_rsa.pub", false, false },
		{ "main.c", false, false },
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		struct rsb_secretlike found = { 0 };
		char *text;

		rsb_secretlike_look(&found, cases[i].path, cases[i].is_dir);
		text = rsb_secretlike_say(&found);
		ck_assert_msg((text != NULL) == cases[i].found, "%s", cases[i].path);
		ck_assert(!text || strstr(text, cases[i].path));
		free(text);
		rsb_secretlike_done(&found);
	}
}
END_TEST

START_TEST(names_some_of_many)
{
	struct rsb_secretlike found = { 0 };
	char *text;

	for (char c = 'a'; c < 'u'; c++)
		rsb_secretlike_look(
			&found, (const char[]){ c, '\n', '/', '.', 'e', 'n', 'v', 0 }, false);
	text = rsb_secretlike_say(&found);
	ck_assert_ptr_nonnull(strstr(text, ": a\\x0a/.env, b\\x0a/.env, c\\x0a/.env, "));
	ck_assert_ptr_nonnull(strstr(text, ", t\\x0a/.env; "));
	free(text);
	rsb_secretlike_look(&found, ".npmrc", false);
	text = rsb_secretlike_say(&found);
	ck_assert_ptr_nonnull(strstr(text, ", t\\x0a/.env and 1 more; "));
	free(text);
	rsb_secretlike_done(&found);
}
END_TEST

START_TEST(some_are_not_synced)
{
	ck_assert(rsb_secretlike_stays(".netrc"));
	ck_assert(rsb_secretlike_stays("a/.NetRC"));
	ck_assert(rsb_secretlike_stays("a/b/.git-credentials"));
	ck_assert(!rsb_secretlike_stays(".netrc/a"));
	ck_assert(!rsb_secretlike_stays("netrc"));
	ck_assert(!rsb_secretlike_stays(".env"));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { tells_them_by_their_names, names_some_of_many,
		some_are_not_synced };

	return unit_run("secretlike", tests, RSB_ARRAY_SIZE(tests));
}
