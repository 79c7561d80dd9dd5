/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "util/diag.h"

START_TEST(returns_the_error_it_was_given)
{
	struct rsb_diag diag = { "" };

	ck_assert_int_eq(rsb_diag_set(&diag, -ENOENT, "no '%s' here", "x"), -ENOENT);
	ck_assert_str_eq(diag.text, "no 'x' here");
	ck_assert_str_eq(rsb_diag_text(&diag, -EIO), "no 'x' here");
	ck_assert_int_eq(rsb_diag_set(NULL, -EIO, "lost"), -EIO);
	(void)rsb_diag_set(&diag, -EIO, "no '%s'", "x\033]0;owned\a\nroot");
	ck_assert_str_eq(diag.text, "no 'x\\x1b]0;owned\\x07\\x0aroot'");
}
END_TEST

START_TEST(cuts_at_its_maximum)
{
	char text[2 * RSB_DIAG_MAX];
	struct rsb_diag diag = { "" };

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(rsb_diag_set(&diag, -EIO, "%s", text), -EIO);
	ck_assert_uint_eq(strlen(diag.text), RSB_DIAG_MAX - 1);
}
END_TEST

START_TEST(falls_back_to_the_text_of_the_error)
{
	const struct rsb_diag empty = { "" };

	ck_assert_str_eq(rsb_diag_text(&empty, -ENOENT), "No such file or directory");
	ck_assert_str_eq(rsb_diag_text(NULL, -ENOENT), "No such file or directory");
	ck_assert_str_eq(rsb_diag_text(NULL, -4000), "unknown error");
	ck_assert_str_eq(rsb_diag_text(NULL, INT32_MIN), "unknown error");
	ck_assert_str_eq(rsb_diag_text(NULL, 5), "unknown error");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		returns_the_error_it_was_given,
		cuts_at_its_maximum,
		falls_back_to_the_text_of_the_error,
	};

	return unit_run("diag", tests, RSB_ARRAY_SIZE(tests));
}
