/* SPDX-License-Identifier: MIT */
/* rename(2) of each type over each type, with each flag; what is open stays what it was. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

static const struct flags {
	const char *name;
	unsigned int flags;
} sets[] = {
	{ "plain", 0 },
	{ "NOREPLACE", RENAME_NOREPLACE },
	{ "EXCHANGE", RENAME_EXCHANGE },
	{ "WHITEOUT", RENAME_WHITEOUT },
	{ "NOREPLACE|EXCHANGE", RENAME_NOREPLACE | RENAME_EXCHANGE },
	{ "unknown", 64 },
};

struct pair {
	const struct flags *set;
	enum pt_type from;
	enum pt_type to;
	bool across;
};

static void
rename_pair(struct pt *t, const void *arg)
{
	const struct pair *pair = arg;
	const char *to = pair->across ? "there/b" : "b";
	char *before;

	pt_make(t, pair->from, "a");
	pt_need(t, mkdir("there", 0755) == 0, "there");
	pt_make(t, pair->to, "b");
	if (pair->across && pair->to != PT_NONE)
		pt_need(t, rename("b", to) == 0, "move");
	before = pt_tree(t);
	pt_did(t, "rename", renameat2(AT_FDCWD, "a", AT_FDCWD, to, pair->set->flags));
	pt_tree_changes(t, before);
}

static void
of_one_inode(struct pt *t, const void *arg)
{
	char *before;

	(void)arg;
	pt_put(t, "a", "text");
	pt_need(t, link("a", "b") == 0, "link");
	before = pt_tree(t);
	pt_did(t, "rename", rename("a", "b"));
	pt_did(t, "self", rename("a", "a"));
	pt_did(t, "noreplace", renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE));
	pt_did(t, "exchange", renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE));
	pt_tree_changes(t, before);
	pt_cat(t, "a", "a");
	pt_cat(t, "b", "b");
}

static void
into_itself(struct pt *t, const void *arg)
{
	char *before;

	(void)arg;
	pt_need(t, mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0 && mkdir("d/e/f", 0755) == 0,
		"mkdir");
	before = pt_tree(t);
	pt_did(t, "child", rename("d", "d/x"));
	pt_did(t, "grandchild", rename("d", "d/e/x"));
	pt_did(t, "over-child", rename("d", "d/e"));
	pt_did(t, "over-parent", rename("d/e", "d"));
	pt_did(t, "over-grandparent", rename("d/e/f", "d"));
	pt_did(t, "exchange-child", renameat2(AT_FDCWD, "d", AT_FDCWD, "d/e", RENAME_EXCHANGE));
	pt_did(t, "exchange-up", renameat2(AT_FDCWD, "d/e/f", AT_FDCWD, "d", RENAME_EXCHANGE));
	pt_did(t, "dot", rename("d/.", "x"));
	pt_did(t, "dotdot", rename("d/e/..", "x"));
	pt_did(t, "to-dot", rename("d/e", "d/."));
	pt_tree_changes(t, before);
}

/* Descriptors of what was moved and of what was replaced. */
static void
over_an_open_file(struct pt *t, const void *arg)
{
	rsb_autoclose int a = -1;
	rsb_autoclose int b = -1;
	char data[8] = "";
	struct stat st;

	(void)arg;
	pt_put(t, "a", "first");
	pt_put(t, "b", "second");
	a = open("a", O_RDWR | O_CLOEXEC);
	b = open("b", O_RDWR | O_CLOEXEC);
	pt_did(t, "rename", rename("a", "b"));
	pt_got(t, "read", pread(b, data, sizeof(data) - 1, 0));
	pt_say(t, " '%s'", data);
	pt_need(t, fstat(b, &st) == 0, "fstat");
	pt_show_stat(t, "over", &st);
	pt_got(t, "write", pwrite(b, "gone", 4, 0));
	pt_put(t, "a", "third");
	pt_got(t, "write", pwrite(a, "F", 1, 0));
	pt_cat(t, "a", "a");
	pt_cat(t, "b", "b");
	pt_need(t, fstat(a, &st) == 0, "fstat");
	pt_show_stat(t, "moved", &st);
}

static void
as_editors_do(struct pt *t, const void *arg)
{
	rsb_autoclose int held = -1;
	char data[16] = "";

	(void)arg;
	pt_put(t, "x", "0");
	held = open("x", O_RDONLY | O_CLOEXEC);
	for (int i = 1; i <= 20; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "%d", i * i * i * i);
		pt_put(t, "x.new", text);
		pt_need(t, rename("x.new", "x") == 0, "rename");
	}
	pt_cat(t, "x", "x");
	pt_got(t, "held", pread(held, data, sizeof(data), 0));
	pt_say(t, " '%s'", data);
	pt_show(t, "x", "x");
	pt_list(t, "list", ".");
}

static void
directory_with_what_is_open_in_it(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = -1;

	(void)arg;
	pt_need(t, mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0, "mkdir");
	pt_put(t, "d/e/x", "deep");
	fd = open("d/e/x", O_RDWR | O_CLOEXEC);
	pt_did(t, "rename", rename("d", "moved"));
	pt_cat(t, "x", "moved/e/x");
	pt_cat(t, "old", "d/e/x");
	pt_got(t, "write", pwrite(fd, "D", 1, 0));
	pt_cat(t, "x", "moved/e/x");
	pt_did(t, "mkdir", mkdir("d", 0755));
	pt_did(t, "again", rename("moved/e", "d/e"));
	pt_got(t, "write", pwrite(fd, "E", 1, 1));
	pt_cat(t, "x", "d/e/x");
	pt_list(t, "moved", "moved");
}

static void
exchange_keeps_both(struct pt *t, const void *arg)
{
	rsb_autoclose int fd = -1;
	char data[8] = "";

	(void)arg;
	pt_put(t, "a", "A");
	pt_make(t, PT_FULL, "b");
	fd = open("a", O_RDONLY | O_CLOEXEC);
	pt_did(t, "exchange", renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_EXCHANGE));
	pt_cat(t, "b", "b");
	pt_cat(t, "a/inside", "a/inside");
	pt_got(t, "read", pread(fd, data, 7, 0));
	pt_say(t, "'%s'", data);
	pt_did(t, "back", renameat2(AT_FDCWD, "b", AT_FDCWD, "a", RENAME_EXCHANGE));
	pt_cat(t, "a", "a");
	pt_list(t, "b", "b");
	pt_did(t, "none", renameat2(AT_FDCWD, "a", AT_FDCWD, "none", RENAME_EXCHANGE));
}

void
pt_cases_rename(struct pt_run *run)
{
	for (size_t s = 0; s < RSB_ARRAY_SIZE(sets); s++) {
		for (int from = PT_NONE; from < PT_N_TYPE; from++) {
			for (int to = PT_NONE; to < PT_N_TYPE; to++) {
				struct pair pair = {
					.set = &sets[s],
					.from = (enum pt_type)from,
					.to = (enum pt_type)to,
				};

				/* Flags that are refused are so whatever is there. */
				if (s > 2 && (from != PT_FILE || to > PT_FILE))
					continue;
				pt_case(run, rename_pair, &pair, "rename.%s %s to %s", sets[s].name,
					pt_type_names[from], pt_type_names[to]);
				pair.across = true;
				if (s <= 2 && from > PT_NONE && from <= PT_LINK && to <= PT_LINK)
					pt_case(run, rename_pair, &pair,
						"rename.%s %s across to %s", sets[s].name,
						pt_type_names[from], pt_type_names[to]);
			}
		}
	}
	pt_case(run, of_one_inode, NULL, "rename.of one inode");
	pt_case(run, into_itself, NULL, "rename.into itself");
	pt_case(run, over_an_open_file, NULL, "rename.over an open file");
	pt_case(run, as_editors_do, NULL, "rename.as editors do");
	pt_case(run, directory_with_what_is_open_in_it, NULL, "rename.directory with what is open");
	pt_case(run, exchange_keeps_both, NULL, "rename.exchange keeps both");
}
