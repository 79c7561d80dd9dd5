/* SPDX-License-Identifier: MIT */
#include "keeper/gitsteps.h"
#include "tests/unit/unit.h"

static int
judge(enum rsb_git_kind kind, const char *text, const char *trusted)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf view = { 0 };
	const struct rsb_bytes last = rsb_bytes_str(trusted ? trusted : "");
	const struct rsb_gitallow what = {
		.kind = kind, .text = rsb_bytes_str(text), .trusted = trusted ? &last : NULL
	};
	char why[RSB_GITALLOW_WHY_MAX];
	int r = rsb_gitallow_judge(&what, &view, why);

	ck_assert_uint_eq(rsb_buf_len(&view), 0);
	ck_assert_msg((r == RSB_GITALLOW_REFUSED) == (why[0] != '\0'), "%d '%s'", r, why);
	return r;
}

static void
check_each(enum rsb_git_kind kind, const char *const *texts, size_t n, int want)
{
	for (size_t i = 0; i < n; i++) {
		ck_assert_msg(judge(kind, texts[i], NULL) == want, "%s", texts[i]);
		ck_assert_int_eq(judge(kind, texts[i], texts[i]), RSB_GITALLOW_AS_IS);
	}
}

#define CHECK_EACH(kind, want, ...)                                                    \
	do {                                                                           \
		static const char *const texts_[] = { __VA_ARGS__ };                   \
		check_each(kind, texts_, RSB_ARRAY_SIZE(texts_), RSB_GITALLOW_##want); \
	} while (0)

START_TEST(by_its_name)
{
	ck_assert_int_eq(rsb_gitsteps_kind(rsb_bytes_str("git-rebase-todo")), RSB_GIT_TODO);
	ck_assert_int_eq(rsb_gitsteps_kind(rsb_bytes_str("opts")), RSB_GIT_OPTS);
	ck_assert_int_eq(rsb_gitsteps_kind(rsb_bytes_str("strategy_opts")), RSB_GIT_OPTION);
	ck_assert_int_eq(rsb_gitsteps_kind(rsb_bytes_str("message")), RSB_GIT_NONE);
	ck_assert_int_eq(rsb_gitsteps_kind(rsb_bytes_str("")), RSB_GIT_NONE);
	ck_assert(rsb_gitsteps_holds(RSB_GIT_AUTHOR));
	ck_assert(!rsb_gitsteps_holds(RSB_GIT_CONFIG));
}
END_TEST

START_TEST(a_list_of_commits_runs_nothing)
{
	static const char text[] = "pick 1\n\0exec x";

	CHECK_EACH(RSB_GIT_TODO, AS_IS, "",
		"pick 1 one\nf 2\n\n# exec x\n  drop 3\r\nupdate-ref refs/heads/x\n",
		"label onto\nreset onto\nmerge -C 1 x # exec ./evil", "noop\n", "break");
	CHECK_EACH(RSB_GIT_TODO, REFUSED, "exec ./evil", "pick 1\nx ./evil\n", " \texec\t./evil\n",
		"execute", "pick 1\n\r exec x", "picked 1\n", "pick p 1\nx\tevil", "X evil\n");
	ck_assert_int_eq(judge(RSB_GIT_TODO, "exec a\nexec b\n", "exec a\n"), RSB_GITALLOW_REFUSED);
	{
		RSB_CLEANUP(rsb_buf_done) struct rsb_buf view = { 0 };
		const struct rsb_gitallow what = { .kind = RSB_GIT_TODO,
			.text = { (const uint8_t *)text, sizeof(text) - 1 } };
		char why[RSB_GITALLOW_WHY_MAX];

		ck_assert_int_eq(rsb_gitallow_judge(&what, &view, why), RSB_GITALLOW_REFUSED);
	}
}
END_TEST

START_TEST(strategies_are_those_of_git)
{
	CHECK_EACH(RSB_GIT_STRATEGY, AS_IS, "ort\n", "recursive", "ours\n");
	CHECK_EACH(
		RSB_GIT_STRATEGY, REFUSED, "", "x", "recursive ort\n", "./../evil\n", "ort\nx\n");
	CHECK_EACH(RSB_GIT_OPTS, AS_IS, "", "[options]\n\tno-commit = true\n\tmainline = 1\n",
		"[options]\nstrategy = ort\n");
	CHECK_EACH(RSB_GIT_OPTS, REFUSED, "[options]\nstrategy = evil\n", "[options]\nstrategy\n",
		"[options]\nstrategy = /x/evil\n[options]\nstrategy = ort\n",
		"[options]\ngpg-sign = x\n", "[options]\nstrategy-option = theirs\n",
		"[core]\npager = x\n", "[options\n");
}
END_TEST

START_TEST(options_are_none)
{
	CHECK_EACH(RSB_GIT_OPTION, AS_IS, "", "\n", " \n");
	CHECK_EACH(RSB_GIT_OPTION, REFUSED, "-S", " '--build-fake-ancestor=/x'\n", "$(evil)\n");
}
END_TEST

START_TEST(an_author_is_quoted)
{
	CHECK_EACH(RSB_GIT_AUTHOR, AS_IS, "",
		"GIT_AUTHOR_NAME='a b'\nGIT_AUTHOR_EMAIL='a@b'\nGIT_AUTHOR_DATE='@1 +0000'\n",
		"GIT_AUTHOR_NAME='O'\\''Brien'\\!''\n", "GIT_AUTHOR_NAME='a\nb'");
	CHECK_EACH(RSB_GIT_AUTHOR, REFUSED, "GIT_AUTHOR_NAME=$(evil)\n", "evil\n",
		"GIT_AUTHOR_NAME='a' evil\n", "GIT_AUTHOR_NAME='a';evil\n", "GIT_AUTHOR_NAME='a\n",
		"GIT_AUTHOR_NAME=''$(evil)''\n", "\nGIT_AUTHOR_NAME='a'\n", "GIT_DIR='x'\n");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = { by_its_name, a_list_of_commits_runs_nothing,
		strategies_are_those_of_git, options_are_none, an_author_is_quoted };

	return unit_run("gitsteps", tests, RSB_ARRAY_SIZE(tests));
}
