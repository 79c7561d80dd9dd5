/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "keeper/target.h"
#include "tests/unit/unit.h"

struct row {
	const char *target;
	size_t depth;
	const char *want; /* NULL: refused */
};

static const struct row rows[] = {
	{ "a", 0, "a" },
	{ "a/b/", 0, "a/b/" },
	{ "./a", 0, "./a" },
	{ "..", 0, NULL },
	{ "..", 1, ".." },
	{ "../a", 1, "../a" },
	{ "../../a", 1, NULL },
	{ "../../pkg/bin", 2, "../../pkg/bin" },
	{ "a/../b", 0, "b" },
	{ "a/..", 0, "." },
	{ "a/../..", 0, NULL },
	{ "a/../..", 1, ".." },
	{ "a/b/../../../c", 0, NULL },
	{ "../a/../../b", 1, NULL },
	{ "a/./../b", 0, "b" },
	{ "a//..//b", 0, "b" },
	{ "...", 0, "..." },
	{ "..a", 0, "..a" },
	{ "", 0, NULL },
	{ "/", 0, NULL },
	{ "/etc/passwd", 5, NULL },
	{ "/space", 0, "." },
	{ "/space/", 2, "../../." },
	{ "/space/a/b", 0, "a/b" },
	{ "/space/a/b", 2, "../../a/b" },
	{ "/space/../etc", 0, NULL },
	{ "/space/a/../../etc", 3, NULL },
	{ "/spaceother", 0, NULL },
	{ "/mnt/x.rsb/a", 0, "/mnt/x.rsb/a" },
	{ "/mnt/x.rsb/../a", 0, NULL },
	{ "/mnt/x.rsb2/a", 0, NULL },
};

START_TEST(never_leads_out)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(rows); i++) {
		const struct rsb_target_place place = {
			.workspace = "/space",
			.mountpoint = "/mnt/x.rsb",
			.depth = rows[i].depth,
		};
		char *got = NULL;
		int r;

		r = rsb_target_map(&place, rsb_bytes_str(rows[i].target), &got);
		if (rows[i].want) {
			ck_assert_msg(
				r == 0, "'%s' at depth %zu: %d", rows[i].target, rows[i].depth, r);
			ck_assert_str_eq(got, rows[i].want);
		} else {
			ck_assert_msg(r == -EACCES, "'%s' at depth %zu: %d, %s", rows[i].target,
				rows[i].depth, r, got ? got : "");
		}
		free(got);
	}
}
END_TEST

START_TEST(refuses_a_nul)
{
	const struct rsb_target_place place = { .workspace = "/w", .mountpoint = "/m" };
	char *got;

	ck_assert_int_eq(
		rsb_target_map(&place,
			(struct rsb_bytes){ .data = (const uint8_t *)"a\0b", .size = 3 }, &got),
		-EACCES);
}
END_TEST

START_TEST(a_workspace_of_everything_allows_nothing)
{
	const struct rsb_target_place place = { .workspace = "/", .mountpoint = "/m" };
	char *got;

	ck_assert_int_eq(rsb_target_map(&place, rsb_bytes_str("/etc/passwd"), &got), -EACCES);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		never_leads_out,
		refuses_a_nul,
		a_workspace_of_everything_allows_nothing,
	};

	return unit_run("target", tests, RSB_ARRAY_SIZE(tests));
}
