/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sidecar/passwd.h"
#include "tests/unit/unit.h"
#include "util/cleanup.h"

static void
write_table(const char *dir, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs(text, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

static void
make_etc(char dir[static 64])
{
	(void)strcpy(dir, "/tmp/rsb-etc-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	write_table(dir, "passwd",
		"root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1001::/home/user:/bin/zsh\n"
		"bare:x:7:8:::\n");
	write_table(dir, "group",
		"user:x:1001:user\nsudo:x:27:other,user\ndocker:x:99:other\nlast:x:5:user\n");
}

static void
remove_etc(const char *dir)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(finds_a_user_and_its_groups)
{
	struct rsb_passwd user;
	char dir[64];

	make_etc(dir);
	ck_assert_int_eq(rsb_passwd_read(dir, "user", &user, NULL), 0);
	ck_assert_str_eq(user.name, "user");
	ck_assert_str_eq(user.home, "/home/user");
	ck_assert_str_eq(user.shell, "/bin/zsh");
	ck_assert_uint_eq(user.uid, 1000);
	ck_assert_uint_eq(user.n_group, 3);
	ck_assert_uint_eq(user.groups[0], 1001);
	ck_assert_uint_eq(user.groups[1], 27);
	ck_assert_uint_eq(user.groups[2], 5);
	rsb_passwd_done(&user);
	remove_etc(dir);
}
END_TEST

START_TEST(fills_in_what_a_line_leaves_empty)
{
	struct rsb_passwd user;
	char dir[64];

	make_etc(dir);
	ck_assert_int_eq(rsb_passwd_read(dir, "bare", &user, NULL), 0);
	ck_assert_str_eq(user.home, "/");
	ck_assert_str_eq(user.shell, "/bin/sh");
	ck_assert_uint_eq(user.n_group, 1);
	rsb_passwd_done(&user);
	remove_etc(dir);
}
END_TEST

START_TEST(says_that_a_user_is_unknown)
{
	struct rsb_diag diag = { .text = "" };
	struct rsb_passwd user;
	char dir[64];

	make_etc(dir);
	ck_assert_int_eq(rsb_passwd_read(dir, "nobody-here", &user, &diag), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "nobody-here"));
	ck_assert_int_eq(rsb_passwd_read("/no/such/etc", "user", &user, &diag), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "/no/such/etc"));
	remove_etc(dir);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		finds_a_user_and_its_groups,
		fills_in_what_a_line_leaves_empty,
		says_that_a_user_is_unknown,
	};

	return unit_run("passwd", tests, RSB_ARRAY_SIZE(tests));
}
