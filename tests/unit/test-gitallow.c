/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "keeper/gitallow.h"
#include "tests/unit/unit.h"
#include "util/str.h"

/* A repository at a/.git of the mount: its files lie two directories below the root. */
static const struct rsb_target_place place = {
	.workspace = "/home/user/workspace",
	.mountpoint = "/mnt/box",
	.depth = 2,
};

static int
judge(enum rsb_git_kind kind, struct rsb_bytes text, const char *trusted, struct rsb_buf *view)
{
	const struct rsb_bytes last = rsb_bytes_str(trusted ? trusted : "");
	const struct rsb_gitallow what = {
		.kind = kind,
		.text = text,
		.trusted = trusted ? &last : NULL,
		.place = place,
		.path = kind == RSB_GIT_GITDIR       ? "a/.git/worktrees/w/gitdir"
			: kind == RSB_GIT_ALTERNATES ? "a/.git/objects/info/alternates"
						     : "a/.git/config",
	};
	char why[RSB_GITALLOW_WHY_MAX];
	int r = rsb_gitallow_judge(&what, view, why);

	ck_assert_msg((r == RSB_GITALLOW_HELD) == (why[0] != '\0'), "%d '%s'", r, why);
	return r;
}

/* view NULL: served as it is. */
static void
check_judge(enum rsb_git_kind kind, const char *text, const char *trusted, const char *view)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	int r = judge(kind, rsb_bytes_str(text), trusted, &out);

	ck_assert_msg((r == RSB_GITALLOW_AS_IS) == !view, "%s: %d", text, r);
	/* What is given needs no second look. */
	if (view && *view && kind != RSB_GIT_GITFILE && kind != RSB_GIT_COMMONDIR) {
		RSB_CLEANUP(rsb_buf_done) struct rsb_buf again = { 0 };

		ck_assert_int_eq(
			judge(kind, rsb_buf_view(&out), trusted, &again), RSB_GITALLOW_AS_IS);
	}
	ck_assert_int_eq(rsb_buf_append(&out, "", 1), 0);
	ck_assert_str_eq((const char *)rsb_buf_head(&out), view ? view : "");
}

/* Git would check out there what it runs. */
START_TEST(no_worktree_in_a_repository)
{
	static const char *const held[] = { ".", "hooks", "./hooks", "../.git", "../.git/hooks",
		"../b/.git", "/mnt/box/a/.git", "/mnt/box/a/.git/hooks", "../.GIT" };
	static const char *const good[] = { "..", "../", "../../sub", "../x", "/mnt/box/a",
		"/mnt/box" };
	char text[128];

	for (size_t i = 0; i < RSB_ARRAY_SIZE(held); i++) {
		(void)snprintf(text, sizeof(text), "[core]\nworktree = %s\n", held[i]);
		check_judge(RSB_GIT_CONFIG, text, NULL, "");
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(good); i++) {
		(void)snprintf(text, sizeof(text), "[core]\nworktree = %s\n", good[i]);
		check_judge(RSB_GIT_CONFIG, text, NULL, NULL);
	}
}
END_TEST

START_TEST(serves_what_is_harmless)
{
	static const char *const texts[] = {
		"",
		"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
		"\tlogallrefupdates = true\n[remote \"origin\"]\n\turl = https://example.org/x.git\n"
		"\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n"
		"\tremote = origin\n\tmerge = refs/heads/main\n",
		"[core]\n\tworktree = ../../sub\n[user]\n\tname = A \"B\" C\n",
		"[remote \"o\"]\nurl = git@example.org:x/y.git\npushurl = ssh://git@example.org/x\n",
		"[remote \"o\"]\nurl = sub/bare.git\n",
		"[remote \"o\"]\nurl = /mnt/box/bare.git\n",
		"[submodule \"s\"]\nupdate = rebase\nurl = https://example.org/s\nactive\n",
		"[core]\nfsmonitor = false\n[pager]\nlog = false\n[color \"diff\"]\nmeta = red\n",
		"[extensions]\nworktreeConfig = true\n[protocol]\nversion = 2\n",
		"[remote \"o\"]\npromisor = false\n",
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(texts); i++)
		check_judge(RSB_GIT_CONFIG, texts[i], NULL, NULL);
}
END_TEST

/* Each alone in a section of its own. */
static const char *const hostile[][2] = {
	{ "core", "fsmonitor = ./x" },
	{ "core", "fsmonitor" },
	{ "core", "FsMonitor=true" },
	{ "core", "hooksPath = hooks" },
	{ "core", "sshCommand = ./x" },
	{ "core", "pager = ./x" },
	{ "core", "editor = ./x" },
	{ "core", "askPass = ./x" },
	{ "core", "gitProxy = ./x" },
	{ "core", "attributesFile = x" },
	{ "core", "excludesFile = x" },
	{ "core", "alternateRefsCommand = ./x" },
	{ "core", "worktree = /home/me" },
	{ "core", "worktree = ../../../x" },
	{ "core", "worktree = ../lnk/../.." },
	{ "core", "worktree = ../lnk//.." },
	{ "remote \"o\"", "url = lnk/../secret" },
	{ "remote \"o\"", "pushurl = ./lnk/.." },
	{ "core", "worktree = /mnt/box/lnk/../x" },
	{ "core", "worktree = /home/user/workspace/a" },
	{ "core", "worktree" },
	{ "sequence", "editor = ./x" },
	{ "pager", "log = ./x" },
	{ "pager", "log" },
	{ "alias", "st = !./x" },
	{ "alias", "st = status" },
	{ "filter \"f\"", "clean = ./x" },
	{ "filter \"f\"", "smudge = ./x" },
	{ "filter \"f\"", "process = ./x" },
	{ "filter.f", "clean = ./x" },
	{ "diff \"d\"", "textconv = ./x" },
	{ "diff \"d\"", "command = ./x" },
	{ "diff", "external = ./x" },
	{ "diff", "orderFile = x" },
	{ "merge \"m\"", "driver = ./x" },
	{ "merge", "tool = x" },
	{ "mergetool \"m\"", "cmd = ./x" },
	{ "difftool \"m\"", "cmd = ./x" },
	{ "credential", "helper = !./x" },
	{ "credential \"https://example.org\"", "helper = ./x" },
	{ "include", "path = x" },
	{ "includeIf \"gitdir:/\"", "path = x" },
	{ "gpg", "program = ./x" },
	{ "gpg \"ssh\"", "program = ./x" },
	{ "gpg \"ssh\"", "defaultKeyCommand = ./x" },
	{ "commit", "gpgSign = true" },
	{ "log", "showSignature = true" },
	{ "user", "signingKey = x" },
	{ "remote \"o\"", "uploadpack = ./x" },
	{ "remote \"o\"", "receivepack = ./x" },
	{ "remote \"o\"", "vcs = x" },
	{ "remote \"o\"", "proxy = http://x" },
	{ "remote \"o\"", "url = ext::./x" },
	{ "remote \"o\"", "url = foo::bar" },
	{ "remote \"o\"", "url = ::bar" },
	{ "remote \"o\"", "url = foo://bar" },
	{ "remote \"o\"", "url = file:///home/me/repo" },
	{ "remote \"o\"", "url = /home/me/repo" },
	{ "remote \"o\"", "url = ../../../home/me" },
	{ "remote \"o\"", "url = ~/repo" },
	{ "remote \"o\"", "url = -oProxyCommand=x" },
	{ "remote \"o\"", "url = ssh://-oProxyCommand=x/y" },
	{ "remote \"o\"", "url" },
	{ "remote \"o\"", "pushurl = ext::x" },
	{ "branch \"b\"", "remote = ext::./x" },
	{ "branch \"b\"", "mergeOptions = --strategy=x" },
	{ "remote", "pushDefault = ext::x" },
	{ "url \"ext::./x\"", "insteadOf = https://" },
	{ "url \"x\"", "pushInsteadOf = https://" },
	{ "protocol", "allow = always" },
	{ "protocol \"ext\"", "allow = always" },
	{ "uploadpack", "packObjectsHook = ./x" },
	{ "gc", "recentObjectsHook = ./x" },
	{ "submodule \"s\"", "update = !./x" },
	{ "submodule \"s\"", "url = ext::x" },
	{ "http", "proxy = http://x" },
	{ "http", "sslVerify = false" },
	{ "http \"https://example.org\"", "extraHeader = x" },
	{ "trailer \"t\"", "command = ./x" },
	{ "interactive", "diffFilter = ./x" },
	{ "sendemail", "smtpServer = ./x" },
	{ "web", "browser = x" },
	{ "browser \"b\"", "cmd = ./x" },
	{ "man \"m\"", "cmd = ./x" },
	{ "guitool \"g\"", "cmd = ./x" },
	{ "lfs \"customtransfer.x\"", "path = ./x" },
	{ "lfs", "url = https://x" },
	{ "core \"x\"", "bare = true" },
	{ "remote", "url = https://example.org" },
	{ "unheard", "of = 1" },
	/* Git connects when an object is missing, or for what it did not ask for. */
	{ "extensions", "partialClone = o" },
	{ "remote \"o\"", "promisor = true" },
	{ "remote \"o\"", "promisor" },
	{ "remote \"o\"", "partialclonefilter = blob:none" },
	{ "fetch", "bundleURI = https://example.org" },
	{ "transfer", "bundleURI = true" },
};

START_TEST(cuts_each_hostile_entry_and_nothing_else)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(hostile); i++) {
		rsb_autofree char *text = rsb_str_printf("[core]\n\tbare = false\n[%s]\n\t%s\n"
							 "[user]\n\tname = n\n",
			hostile[i][0], hostile[i][1]);
		static const char view[] = "[core]\n\tbare = false\n[user]\n\tname = n\n";
		rsb_autofree char *inline_text =
			rsb_str_printf("[%s] %s", hostile[i][0], hostile[i][1]);
		rsb_autofree char *inline_view = rsb_str_printf("[%s] ", hostile[i][0]);

		check_judge(RSB_GIT_CONFIG, text, NULL, view);
		check_judge(RSB_GIT_CONFIG, inline_text, NULL, inline_view);
		check_judge(RSB_GIT_CONFIG, view, NULL, NULL);
	}
}
END_TEST

START_TEST(finds_what_is_hidden_by_quotes_and_comments)
{
	check_judge(RSB_GIT_CONFIG, "[user]\nname = \"a\\\n\"\n[core]\nfsmonitor=x\n", NULL,
		"[user]\nname = \"a\\\n\"\n");
	check_judge(RSB_GIT_CONFIG, "[core] # \\\nfsmonitor=\\\nx\n", NULL, "[core] # \\\n");
	check_judge(RSB_GIT_CONFIG, "[user]\nname = \"[core]\\nfsmonitor = x\"\n", NULL, NULL);
	check_judge(RSB_GIT_CONFIG, "[user]name=\\\n[core]\\\nfsmonitor=x\n", NULL, NULL);
	check_judge(RSB_GIT_CONFIG, "[core]bare=false\n[core]fsmonitor=x", NULL,
		"[core]bare=false\n[core]");
	/* What cannot be read is not served at all. */
	check_judge(RSB_GIT_CONFIG, "[core]\nbare = false\n[user\nname = n\n", NULL, "");
}
END_TEST

START_TEST(refuses_what_it_cannot_read)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	const struct rsb_bytes nul = { (const uint8_t *)"[a]\0\n", 5 };

	ck_assert_int_eq(judge(RSB_GIT_CONFIG, nul, NULL, &out), RSB_GITALLOW_HELD);
	ck_assert_uint_eq(rsb_buf_len(&out), 0);
	ck_assert_int_eq(judge(RSB_GIT_ATTRIBUTES, nul, NULL, &out), RSB_GITALLOW_HELD);
	ck_assert_uint_eq(rsb_buf_len(&out), 0);
}
END_TEST

#define LFS "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\trequired = true\n"

START_TEST(believes_what_was_trusted)
{
	static const char last[] = "[core]\n\tbare = false\n" LFS;

	check_judge(RSB_GIT_CONFIG, last, last, NULL);
	/* Harmless changes beside it do not take the trust away, whoever makes them. */
	check_judge(RSB_GIT_CONFIG, LFS "[branch \"b\"]\n\tremote = origin\n", last, NULL);
	/* Another command gives way to what was trusted, others are left out. */
	check_judge(
		RSB_GIT_CONFIG, "[filter \"lfs\"]\n\tclean = ./x\n\trequired = true\n", last, LFS);
	check_judge(RSB_GIT_CONFIG, "[filter \"lfs\"]\nclean = ./x\nclean=y\n[a]\nb\n", last,
		"[filter \"lfs\"]\nclean = git-lfs clean -- %f\n");
	check_judge(RSB_GIT_CONFIG, LFS "[core]\n\tsshCommand = ./x\n", last, LFS);
	check_judge(RSB_GIT_CONFIG, LFS "\tclean = ./x\n[user]\n\tname = n\n", last,
		LFS "[user]\n\tname = n\n");
	check_judge(
		RSB_GIT_CONFIG, "[filter \"other\"]\n\tclean = git-lfs clean -- %f\n", last, "");
	check_judge(RSB_GIT_CONFIG, "[core\n", last, last);
	/* What cannot be read but was trusted, e.g. because it is no repository at all. */
	check_judge(RSB_GIT_CONFIG, "a: 1\n", "a: 1\n", NULL);
	check_judge(RSB_GIT_CONFIG, "a: 2\n", "a: 1\n", "a: 1\n");
}
END_TEST

START_TEST(attributes_name_no_driver)
{
	check_judge(RSB_GIT_ATTRIBUTES,
		"# c filter=x\n*.c text diff=cpp eol=lf\n*.png binary -diff -filter !merge\n"
		"*.txt merge=union linguist-generated=true\n\n",
		NULL, NULL);
	check_judge(RSB_GIT_ATTRIBUTES, "*.a filter=x\n*.b text\n", NULL, "*.b text\n");
	check_judge(RSB_GIT_ATTRIBUTES, "* diff=x", NULL, "");
	check_judge(RSB_GIT_ATTRIBUTES, "* merge=x", NULL, "");
	check_judge(RSB_GIT_ATTRIBUTES, "\t* \ttext\tfilter=x\r\n", NULL, "");
	check_judge(RSB_GIT_ATTRIBUTES, "\"a b\" text\n", NULL, "");
	check_judge(RSB_GIT_ATTRIBUTES, "[attr]x filter=y\n* x\n", NULL, "");
	check_judge(RSB_GIT_ATTRIBUTES, "* filter=lfs\n", "* filter=lfs\n", NULL);
	check_judge(RSB_GIT_ATTRIBUTES, "* filter=x\n", "* filter=lfs\n", "* filter=lfs\n");
}
END_TEST

START_TEST(pointers_stay_inside)
{
	check_judge(RSB_GIT_GITFILE, "gitdir: ../../.git/modules/a\n", NULL, NULL);
	check_judge(RSB_GIT_GITFILE, "gitdir: /mnt/box/.git/worktrees/w\n", NULL, NULL);
	check_judge(RSB_GIT_GITFILE, "gitdir: /home/user/workspace/.git/worktrees/w\n", NULL,
		"gitdir: ../../.git/worktrees/w\n");
	check_judge(RSB_GIT_GITFILE, "gitdir: ../../../evil\n", NULL, "");
	check_judge(RSB_GIT_GITFILE, "gitdir: /tmp/evil\n", NULL, "");
	check_judge(RSB_GIT_GITFILE, "gitdir: /proc/self/cwd/evil\n", NULL, "");
	check_judge(RSB_GIT_GITFILE, "gitdir: a\nb\n", NULL, "");
	check_judge(RSB_GIT_GITFILE, "nonsense", NULL, "");
	check_judge(RSB_GIT_GITFILE, "", NULL, "");
	check_judge(RSB_GIT_GITFILE, "gitdir: /tmp/mine\n", "gitdir: /tmp/mine\n", NULL);
	check_judge(RSB_GIT_COMMONDIR, "../..\n", NULL, NULL);
	check_judge(RSB_GIT_COMMONDIR, "../../..\n", NULL, "");
	check_judge(RSB_GIT_COMMONDIR, "/home/user/workspace/r/.git\r\n", NULL, "../../r/.git\n");
}
END_TEST

START_TEST(objects_stay_inside)
{
	static const char *const out[] = {
		"/host/priv/.git/objects\n",
		"/host/priv/.git/objects",
		"../../../../priv/.git/objects\n",
		"x/../../../../../priv\n",
		"/mnt/box/../priv\n",
		"/mnt/boxes/objects\n",
		"/home/user/workspace/../x\n",
		"/home/user/workspaces/x\n",
		"/proc/self/root/host\n",
		"\"/host/priv\"\n",
		"\"\\057host/priv\"\n",
		"\"/mnt/box/\\056\\x2e/priv\"\n",
		"\"/mnt/box/\\056./priv\"\n",
		"\"../../../../priv\"",
		"\"/mnt/box/\\000\"\n",
		"\"/mnt/box/a\\nb\"\n",
		"\"a\\nb\"\n",
		/* Behind such a quote git goes on as if on another line. */
		"\"/mnt/box/a\"x/host/priv\n",
		"\"/mnt/box/a\" \n",
		"\"/mnt/box/a\"\r\n",
		/* One that is not ended is none, and is a name. */
		"\"/mnt/box/a\n",
		"\"/mnt/box/a\\\n",
		"\"/mnt/box/a\\40\"\n",
		"\"/mnt/box/a\\400\"\n",
		"\"\n",
		"\"\"\n",
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(out); i++) {
		rsb_autofree char *more = rsb_str_printf("# c\n/mnt/box/b\n\n%s", out[i]);

		check_judge(RSB_GIT_ALTERNATES, out[i], NULL, "");
		check_judge(RSB_GIT_ALTERNATES, more, NULL, "# c\n/mnt/box/b\n\n");
	}
	check_judge(RSB_GIT_ALTERNATES, "", NULL, NULL);
	check_judge(
		RSB_GIT_ALTERNATES, "# /host\n\n/mnt/box/b/.git/objects\n/mnt/box/c", NULL, NULL);
	check_judge(RSB_GIT_ALTERNATES, "\"/mnt/box/a\\tb\\\"\\303\\244\"\n", NULL, NULL);
	check_judge(RSB_GIT_ALTERNATES, "\"../a\\tb\\\"\\303\\244\"\n", NULL,
		"/mnt/box/a/.git/a\tb\"\xc3\xa4\n");
	check_judge(RSB_GIT_ALTERNATES, "\"/mnt/box/a\"\n", NULL, NULL);
	/* The same for whoever reads it, wherever the file is reached. */
	check_judge(RSB_GIT_ALTERNATES, "../../../b/.git/objects\n/home/user/workspace/c\n", NULL,
		"/mnt/box/b/.git/objects\n/mnt/box/c\n");
	check_judge(RSB_GIT_ALTERNATES, "../lnk/../x\n", NULL, "/mnt/box/a/.git/x\n");
	check_judge(RSB_GIT_ALTERNATES, " ..\r\n", NULL, "/mnt/box/a/.git/objects/ ..\r\n");
	check_judge(RSB_GIT_ALTERNATES, "/home/user/workspace", NULL, "/mnt/box/.\n");
	check_judge(RSB_GIT_ALTERNATES, "/host/a\n", "/host/a\n", NULL);
	check_judge(RSB_GIT_ALTERNATES, "/host/b\n/mnt/box/c\n", "/host/a\n", "/host/a\n");
}
END_TEST

START_TEST(objects_behind_a_nul_are_refused)
{
	RSB_CLEANUP(rsb_buf_done) struct rsb_buf out = { 0 };
	const struct rsb_bytes nul = { (const uint8_t *)"/mnt/box/a\0b\n", 13 };

	ck_assert_int_eq(judge(RSB_GIT_ALTERNATES, nul, NULL, &out), RSB_GITALLOW_HELD);
	ck_assert_int_eq(judge(RSB_GIT_GITDIR, nul, "x", &out), RSB_GITALLOW_HELD);
	ck_assert(rsb_buf_len(&out) == 1);
}
END_TEST

START_TEST(worktrees_stay_inside)
{
	static const char nowhere[] = "/mnt/box/a/.git/worktrees/w/held-back/.git\n";
	static const char *const out[] = {
		"/host/victim/.git\n",
		"/mnt/box/../victim/.git\n",
		"/mnt/box/.. \n",
		"/mnt/box/..\t\v\f\n\r\n",
		"../../../../../victim/.git\n",
		"/mnt/box/a/.git\n/host/victim/.git\n",
		"\n",
	};

	for (size_t i = 0; i < RSB_ARRAY_SIZE(out); i++)
		check_judge(RSB_GIT_GITDIR, out[i], NULL, nowhere);
	check_judge(RSB_GIT_GITDIR, "", NULL, NULL);
	check_judge(RSB_GIT_GITDIR, "/mnt/box/w/.git\n", NULL, NULL);
	check_judge(RSB_GIT_GITDIR, "/home/user/workspace/w/.git\n", NULL, "/mnt/box/w/.git\n");
	/* As newer git writes it, and older git takes from where it runs. */
	check_judge(RSB_GIT_GITDIR, "../../../../w/.git\n", NULL, "/mnt/box/w/.git\n");
	check_judge(RSB_GIT_GITDIR, "/host/w/.git\n", "/host/w/.git\n", NULL);
	check_judge(RSB_GIT_GITDIR, "/host/v/.git\n", "/host/w/.git\n", "/host/w/.git\n");
}
END_TEST

START_TEST(hooks_and_old_remotes_are_trusted_or_not)
{
	check_judge(RSB_GIT_RERERE, "", NULL, NULL);
	check_judge(RSB_GIT_RERERE, "0123.-1\t.git/hooks/post-commit", NULL, "");
	check_judge(RSB_GIT_HOOK, "#!/bin/sh\nevil\n", NULL, "");
	check_judge(RSB_GIT_HOOK, "#!/bin/sh\nevil\n", "#!/bin/sh\ngood\n", "#!/bin/sh\ngood\n");
	check_judge(RSB_GIT_HOOK, "#!/bin/sh\ngood\n", "#!/bin/sh\ngood\n", NULL);
	check_judge(RSB_GIT_REMOTE, "URL: ext::x\n", NULL, "");
	check_judge(RSB_GIT_REMOTE, "URL: a\n", "URL: a\n", NULL);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		no_worktree_in_a_repository,
		serves_what_is_harmless,
		cuts_each_hostile_entry_and_nothing_else,
		finds_what_is_hidden_by_quotes_and_comments,
		refuses_what_it_cannot_read,
		believes_what_was_trusted,
		attributes_name_no_driver,
		pointers_stay_inside,
		objects_stay_inside,
		objects_behind_a_nul_are_refused,
		worktrees_stay_inside,
		hooks_and_old_remotes_are_trusted_or_not,
	};

	return unit_run("gitallow", tests, RSB_ARRAY_SIZE(tests));
}
