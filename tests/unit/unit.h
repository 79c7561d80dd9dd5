/* SPDX-License-Identifier: MIT */
#ifndef RSB_UNIT_H
#define RSB_UNIT_H

/*
 * The frame of a unit test: a main() that lists its tests.
 *
 *	int
 *	main(void)
 *	{
 *		const TTest *const tests[] = { refuses_this, keeps_that };
 *
 *		return unit_run("buf", tests, RSB_ARRAY_SIZE(tests));
 *	}
 */

#include <stdio.h>
#include <stdlib.h>

#include <check.h>

#include "util/macro.h"

/* Each test runs in a process of its own, unless CK_FORK=no. Returns the exit status. */
static inline int
unit_run(const char *name, const TTest *const *tests, size_t n_test)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	int n_failed;
	size_t i;

	tcase_set_timeout(tcase, 60);
	for (i = 0; i < n_test; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Also directories that a test made unreadable, which an ordinary user cannot enter. */
static inline void
unit_remove_tree(const char *path)
{
	char command[256];

	(void)snprintf(command, sizeof(command), "chmod -R u+rwx '%s' && rm -rf '%s'", path, path);
	ck_assert_int_eq(system(command), 0);
}

#endif
