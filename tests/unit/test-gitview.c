/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "keeper/gitview.h"
#include "tests/unit/unit.h"

static struct rsb_gitallow
config(const char *text, const struct rsb_bytes *trusted)
{
	return (struct rsb_gitallow){
		.kind = RSB_GIT_CONFIG,
		.text = rsb_bytes_str(text),
		.trusted = trusted,
		.place = { .workspace = "/w", .mountpoint = "/m", .depth = 1 },
	};
}

static void
check_view(const char *text, const struct rsb_bytes *trusted, const char *want)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf view = { 0 };
	const struct rsb_gitallow what = config(text, trusted);
	char why[RSB_GITALLOW_WHY_MAX];

	ck_assert_int_eq(rsb_gitview_config(&what, &view, why), RSB_GITALLOW_HELD);
	ck_assert_int_eq(rsb_buf_append(&view, "", 1), 0);
	ck_assert_str_eq((const char *)rsb_buf_head(&view), want);
}

/* Of the sandbox's theirs, when git here has written ours; and the next view of that is ours. */
static void
check_kept(const char *theirs, const char *trusted, const char *ours, const char *want)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf all = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf kept = { 0 };
	const struct rsb_bytes last = rsb_bytes_str(trusted ? trusted : "");
	const struct rsb_gitallow what = config(theirs, trusted ? &last : NULL);

	ck_assert_int_eq(rsb_gitview_kept(&what, rsb_bytes_str(ours), &kept), 0);
	ck_assert_int_eq(rsb_buf_printf(&all, "%s", ours), 0);
	ck_assert_int_eq(rsb_buf_append(&all, rsb_buf_head(&kept), rsb_buf_len(&kept)), 0);
	ck_assert_int_eq(rsb_buf_append(&kept, "", 1), 0);
	ck_assert_int_eq(rsb_buf_append(&all, "", 1), 0);
	ck_assert_str_eq((const char *)rsb_buf_head(&kept), want);
	/* As the daemon does, which takes what git here wrote for the user's own. */
	if (want[0] == '[' && !strstr(ours, "pager")) {
		const struct rsb_bytes own = rsb_bytes_str(ours);

		check_view((const char *)rsb_buf_head(&all), &own, ours);
	}
}

START_TEST(leaves_out_lines_and_headers_without_a_trace)
{
	check_view("[core]\n\tpager = x\n\tbare = false\n", NULL, "[core]\n\tbare = false\n");
	check_view("[core]\npager = x\nbare = false\n", NULL, "[core]\nbare = false\n");
	check_view("[core]\n\tbare = false\n\tpager = x\n\teditor = y", NULL,
		"[core]\n\tbare = false\n");
	check_view("[core]\r\n\tpager = x\r\n[user]\r\n\tname = n\r\n", NULL,
		"[user]\r\n\tname = n\r\n");
	check_view("[core]\n\tpager = x\n[core]\n\teditor = y\n\n", NULL, "\n");
	/* Comments, and headers that share a line, stay. */
	check_view("[core]\n\tpager = x\n\t# why\n[user]\n", NULL, "[core]\n\t# why\n[user]\n");
	check_view("[core]\n# why\n\tpager = x\n", NULL, "[core]\n# why\n");
	check_view("[core]pager = x\nbare = false\n", NULL, "[core]\nbare = false\n");
	check_view(
		"[user] [core]\npager = x\nbare = false\n", NULL, "[user] [core]\nbare = false\n");
	check_view("[core]\n\tpager = x\n\n\tpager = y\n", NULL, "[core]\n\n");
	check_view("[core]\n\tpager = x\n[user]\n[user]\n\tname = n\n", NULL,
		"[core]\n[user]\n[user]\n\tname = n\n");
	check_view("\xef\xbb\xbf[core]\n\tpager = x\n", NULL, "\xef\xbb\xbf[core]\n");
}
END_TEST

START_TEST(gives_what_was_trusted_instead)
{
	const struct rsb_bytes last =
		rsb_bytes_str("[core] pager = a # mine\r\n\tpager = b\n[core]\n\teditor = e\n");

	check_view("[core]\n\tpager = x\n\tbare = true\n", &last,
		"[core]\n\tpager = a # mine\n\tpager = b\n\tbare = true\n");
	/* Not what the text has as well. */
	check_view("[core]\n\tpager = b\n\tpager = x\n", &last,
		"[core]\n\tpager = b\n\tpager = a # mine\n");
	check_view("[core]\n\tpager = b\n\tpager = a\n\tpager = x\n", &last,
		"[core]\n\tpager = b\n\tpager = a\n");
	check_view("[core]\n\taskPass = x\n", &last, "");
}
END_TEST

START_TEST(what_was_held_back_comes_back)
{
	check_kept("[core]\n\tbare = false\n\tfsmonitor = ./x\n\tpager = y # z\n", NULL,
		"[core]\n\tbare = false\n[user]\n\tname = c\n",
		"[core]\n\tfsmonitor = ./x\n\tpager = y # z\n");
	/* Once more it is the same. */
	check_kept("[core]\n\tbare = false\n[core]\n\tfsmonitor = ./x\n", NULL,
		"[core]\n\tbare = true\n", "[core]\n\tfsmonitor = ./x\n");
	check_kept(
		"[submodule \"a.B\"]\n\turl = /outside\n\tactive = true\n[Core]\n\tpager=\\\n x\n",
		NULL, "", "[submodule \"a.B\"]\n\turl = /outside\n[Core]\n\tpager=\\\n x\n");
	/* A line that is not ended. */
	check_kept("[core]\n\tpager = x", NULL, "[user]\n\tname = c", "\n[core]\n\tpager = x\n");
	/* What was written anyway, once for once, and what was not held back. */
	check_kept("[core]\n\tpager = x\n\tpager = x\n\tpager = y\n", NULL, "[core]\n\tpager = x\n",
		"[core]\n\tpager = x\n\tpager = y\n");
	check_kept("[core]\n\tpager = x\n\teditor = e\n", "[core]\n\teditor = e\n",
		"[user]\n\tname = c\n", "[core]\n\tpager = x\n");
	check_kept("[core]\n\tbare = false\n", NULL, "", "");
}
END_TEST

START_TEST(what_cannot_be_read_does_not_come_back)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	struct rsb_gitallow what = config("[core\n\tpager = x\n", NULL);

	ck_assert_int_eq(rsb_gitview_kept(&what, rsb_bytes_str(""), &out), -EBADMSG);
	what = config("[core]\n\tpager = x\n", NULL);
	ck_assert_int_eq(rsb_gitview_kept(&what, rsb_bytes_str("[core"), &out), -EBADMSG);
	ck_assert_uint_eq(rsb_buf_len(&out), 0);
	out.max = 8;
	ck_assert_int_eq(rsb_gitview_kept(&what, rsb_bytes_str(""), &out), -EMSGSIZE);
}
END_TEST

START_TEST(keeps_a_bounded_number)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf text = { 0 };
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	struct rsb_gitallow what = config("", NULL);

	ck_assert_int_eq(rsb_buf_printf(&text, "[core]\n"), 0);
	for (size_t i = 0; i < 2 * RSB_GITVIEW_KEPT_MAX; i++)
		ck_assert_int_eq(rsb_buf_printf(&text, "pager=x\n"), 0);
	what.text = rsb_buf_view(&text);
	ck_assert_int_eq(rsb_gitview_kept(&what, rsb_bytes_str(""), &out), 0);
	ck_assert_uint_eq(rsb_buf_len(&out),
		strlen("[core]\n") + RSB_GITVIEW_KEPT_MAX * strlen("\tpager=x\n"));
}
END_TEST

static void
check_why(const char *text, const char *want)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf view = { 0 };
	const struct rsb_gitallow what = { .kind = RSB_GIT_CONFIG, .text = rsb_bytes_str(text) };
	char why[RSB_GITALLOW_WHY_MAX];

	ck_assert_int_eq(rsb_gitview_config(&what, &view, why), RSB_GITALLOW_HELD);
	ck_assert_str_eq(why, want);
}

START_TEST(says_all_that_it_holds)
{
	char text[1024];
	char long_name[400];
	char want[RSB_GITALLOW_WHY_MAX];

	check_why("[core]\npager = x\n", "core.pager");
	check_why("[core]\npager = x\nbare = false\nfsmonitor = y\n[alias]\nx = !y\n",
		"core.pager, core.fsmonitor, alias.x");
	/* One that is long hides nothing. */
	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	(void)snprintf(text, sizeof(text), "[filter \"%s\"]\nclean = x\n[core]\npager = x\n%s",
		long_name, "fsmonitor = y\n");
	(void)snprintf(want, sizeof(want), "filter.%.216s, and 2 more", long_name);
	check_why(text, want);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		leaves_out_lines_and_headers_without_a_trace,
		gives_what_was_trusted_instead,
		what_was_held_back_comes_back,
		what_cannot_be_read_does_not_come_back,
		keeps_a_bounded_number,
		says_all_that_it_holds,
	};

	return unit_run("gitview", tests, RSB_ARRAY_SIZE(tests));
}
