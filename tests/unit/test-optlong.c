/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/unit/unit.h"
#include "util/optlong.h"

static const struct option longs[] = {
	{ "kill", no_argument, NULL, 'k' },
	{ "mount", required_argument, NULL, 'm' },
	{ 0 },
};

static const struct {
	const char *words[4]; /* the last of them is wrong; NULL: none is */
	const char *said;
} cases[] = {
	{ { "--kill", "--mount", "x" }, NULL },
	{ { "--mount=x", "-m", "y" }, NULL },
	{ { "--kil" }, "unknown option '--kil'" },
	{ { "--kil=x" }, "unknown option '--kil'" },
	{ { "--moun", "x" }, "unknown option '--moun'" },
	{ { "--nothing", "x" }, "unknown option '--nothing'" },
	{ { "--kill=x" }, "option '--kill' takes no argument" },
	{ { "--kill", "--mount" }, "option '--mount' needs an argument" },
	{ { "--kill", "-m" }, "option '-m' needs an argument" },
	{ { "-vm" }, "option '-m' needs an argument" },
	{ { "--kill", "-kx" }, "unknown option '-k'" },
	{ { "--kill", "-vx" }, "unknown option '-x'" },
	{ { "-x" }, "unknown option '-x'" },
	{ { "word", "-xv" }, "unknown option '-x'" },
};

START_TEST(names_what_is_wrong)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		const char *argv[6] = { "program" };
		struct rsb_diag diag = { .text = "" };
		int argc = 1;
		int c;

		for (; argc <= 4 && cases[i].words[argc - 1]; argc++)
			argv[argc] = cases[i].words[argc - 1];
		optind = 0;
		do {
			c = rsb_optlong(argc, (char *const *)(uintptr_t)argv, "vm:", longs, &diag);
		} while (c != -1 && c != '?');
		ck_assert_int_eq(c, cases[i].said ? '?' : -1);
		ck_assert_str_eq(diag.text, cases[i].said ? cases[i].said : "");
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		names_what_is_wrong,
	};

	return unit_run("optlong", tests, RSB_ARRAY_SIZE(tests));
}
