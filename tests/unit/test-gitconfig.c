/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "keeper/gitconfig.h"
#include "tests/unit/unit.h"

static void
check_strip(const char *text, const char *want)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	bool cut = false;

	ck_assert_int_eq(rsb_gitconfig_strip(rsb_bytes_str(text), &out, &cut), 0);
	ck_assert_int_eq(cut, strcmp(text, want) != 0);
	ck_assert_uint_eq(rsb_buf_len(&out), strlen(want));
	ck_assert_int_eq(memcmp(rsb_buf_head(&out), want, strlen(want)), 0);
}

START_TEST(cuts_credentials_and_nothing_else)
{
	check_strip("[core]\n\tbare = false\n[remote \"o\"]\n\turl = https://example.org/x.git\n",
		"[core]\n\tbare = false\n[remote \"o\"]\n\turl = https://example.org/x.git\n");
	check_strip("[remote \"o\"]\n\turl = https://me:secret@example.org/x.git\n\tfetch = +a:b\n",
		"[remote \"o\"]\n\turl = https://example.org/x.git\n\tfetch = +a:b\n");
	check_strip("\turl = https://token@example.org/x\n", "\turl = https://example.org/x\n");
	check_strip("\turl = ssh://git@example.org/x\n\turl = git@example.org:x\n",
		"\turl = ssh://git@example.org/x\n\turl = git@example.org:x\n");
	check_strip("[http \"https://example.org\"]\n\textraheader = AUTHORIZATION: basic x\n",
		"[http \"https://example.org\"]\n");
	check_strip("[http]\n\textraHeader = a \\\n\tb\n\tproxy = p\n", "[http]\n\tproxy = p\n");
	check_strip("[credential]\n\thelper = store\n[user]\n\tname = n\n", "[user]\n\tname = n\n");
	check_strip("[credential \"https://x\"]\n\tusername = n", "");
}
END_TEST

START_TEST(knows_the_files)
{
	ck_assert(rsb_gitconfig_is_config(".git/config"));
	ck_assert(rsb_gitconfig_is_config("sub/.git/config"));
	ck_assert(rsb_gitconfig_is_config(".git/modules/m/config"));
	ck_assert(!rsb_gitconfig_is_config("config"));
	ck_assert(!rsb_gitconfig_is_config("a.git/config"));
	ck_assert(!rsb_gitconfig_is_config(".git/HEAD"));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { cuts_credentials_and_nothing_else, knows_the_files };

	return unit_run("gitconfig", tests, RSB_ARRAY_SIZE(tests));
}
