/* SPDX-License-Identifier: MIT */
/* Who may do what: owner, group, others, sticky directories, chown. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "pt.h"
#include "util/cleanup.h"

static const struct whom {
	const char *name;
	uid_t uid;
	gid_t gid;
} whoms[] = {
	{ "owner", PT_USER, PT_GROUP },
	{ "member", PT_USER + 1, PT_GROUP },
	{ "stranger", PT_USER + 2, PT_GROUP + 2 },
	{ "root", 0, 0 },
};

/* ---- access by mode ---- */

static const mode_t rights[] = { 0, 0400, 0040, 0004, 0200, 0020, 0002, 0100, 0010, 0001, 0754,
	0777 };

struct asking {
	mode_t mode;
	const struct whom *whom;
};

static void
may_use_file(struct pt *t, const void *arg)
{
	const struct asking *a = arg;
	const struct timespec times[2] = { { .tv_sec = 5 }, { .tv_sec = 6 } };

	if (pt_skip_unless_root(t))
		return;
	pt_put(t, "x", "text");
	pt_need(t, chown("x", PT_USER, PT_GROUP) == 0 && chmod("x", a->mode) == 0, "mode");
	pt_become(t, a->whom->uid, a->whom->gid);
	pt_did(t, "read", open("x", O_RDONLY | O_CLOEXEC));
	pt_did(t, "write", open("x", O_WRONLY | O_CLOEXEC));
	pt_did(t, "both", open("x", O_RDWR | O_CLOEXEC));
	pt_did(t, "trunc", open("x", O_RDONLY | O_TRUNC | O_CLOEXEC));
	pt_did(t, "R", access("x", R_OK));
	pt_did(t, "W", access("x", W_OK));
	pt_did(t, "X", access("x", X_OK));
	pt_did(t, "truncate", truncate("x", 1));
	pt_did(t, "now", utimensat(AT_FDCWD, "x", NULL, 0));
	pt_did(t, "times", utimensat(AT_FDCWD, "x", times, 0));
	pt_did(t, "xattr", setxattr("x", "user.x", "v", 1, 0));
	pt_did(t, "getxattr", (int)getxattr("x", "user.x", NULL, 0));
	pt_did(t, "chmod", chmod("x", 0640));
	pt_did(t, "link", link("x", "y"));
	pt_show(t, "x", "x");
}

static void
may_use_dir(struct pt *t, const void *arg)
{
	const struct asking *a = arg;
	int r;

	if (pt_skip_unless_root(t))
		return;
	pt_make(t, PT_FULL, "d");
	pt_put(t, "d/mine", "mine");
	pt_need(t,
		chown("d/mine", a->whom->uid, a->whom->gid) == 0 &&
			chown("d", PT_USER, PT_GROUP) == 0 && chmod("d", a->mode) == 0,
		"mode");
	pt_become(t, a->whom->uid, a->whom->gid);
	pt_list(t, "list", "d");
	r = chdir("d");
	pt_did(t, "chdir", r);
	pt_need(t, r < 0 || chdir("..") == 0, "back");
	pt_show(t, "stat", "d/inside");
	pt_did(t, "absent", access("d/none", F_OK));
	pt_did(t, "open", open("d/inside", O_RDONLY | O_CLOEXEC));
	pt_did(t, "creat", open("d/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	pt_did(t, "mkdir", mkdir("d/newdir", 0755));
	pt_did(t, "symlink", symlink("x", "d/newlink"));
	pt_did(t, "link", link("d/mine", "d/linked"));
	pt_did(t, "rename", rename("d/mine", "d/renamed"));
	pt_did(t, "unlink", unlink("d/inside"));
	pt_did(t, "rmdir", rmdir("d/newdir"));
}

/* ---- sticky directories ---- */

struct act {
	const char *name;
	int (*fn)(void);
};

static int
act_unlink(void)
{
	return unlink("d/x");
}

static int
act_rmdir(void)
{
	return rmdir("d/dir");
}

static int
act_rename_away(void)
{
	return rename("d/x", "free/x");
}

static int
act_rename_over(void)
{
	return rename("free/own", "d/x");
}

static int
act_rename_within(void)
{
	return rename("d/x", "d/y");
}

static int
act_rename_dir(void)
{
	return rename("d/dir", "free/dir");
}

static const struct act acts[] = {
	{ "unlink", act_unlink },
	{ "rmdir", act_rmdir },
	{ "rename away", act_rename_away },
	{ "rename over", act_rename_over },
	{ "rename within", act_rename_within },
	{ "rename of a directory", act_rename_dir },
};

struct sticking {
	const struct act *act;
	const struct whom *whom;
	uid_t dir_owner;
	uid_t file_owner;
};

static void
sticky(struct pt *t, const void *arg)
{
	const struct sticking *s = arg;

	if (pt_skip_unless_root(t))
		return;
	pt_need(t, mkdir("d", 0777) == 0 && mkdir("d/dir", 0777) == 0 && mkdir("free", 0777) == 0,
		"mkdir");
	pt_put(t, "d/x", "x");
	pt_put(t, "free/own", "own");
	pt_need(t,
		chmod("d", 01777) == 0 && chmod("free", 0777) == 0 && chmod("d/dir", 0777) == 0 &&
			chown("d/x", s->file_owner, 0) == 0 &&
			chown("d/dir", s->file_owner, 0) == 0 && chown("d", s->dir_owner, 0) == 0 &&
			chown("free/own", s->whom->uid, 0) == 0,
		"owners");
	pt_become(t, s->whom->uid, s->whom->gid);
	pt_did(t, s->act->name, s->act->fn());
	pt_list(t, "d", "d");
	pt_list(t, "free", "free");
}

/* ---- chown ---- */

static const struct owning {
	const char *name;
	uid_t uid;
	gid_t gid;
} ownings[] = {
	{ "nobody new", (uid_t)-1, (gid_t)-1 },
	{ "oneself", PT_USER, (gid_t)-1 },
	{ "own group", (uid_t)-1, PT_GROUP },
	{ "both", PT_USER, PT_GROUP },
	{ "other user", PT_USER + 1, (gid_t)-1 },
	{ "other group", (uid_t)-1, PT_GROUP + 1 },
	{ "root", 0, 0 },
};

struct giving {
	const struct owning *owning;
	const struct whom *whom;
	enum pt_type type;
	mode_t mode;
};

static void
give(struct pt *t, const void *arg)
{
	const struct giving *g = arg;

	if (pt_skip_unless_root(t))
		return;
	pt_make(t, g->type, "x");
	pt_need(t, lchown("x", PT_USER, PT_GROUP) == 0, "lchown");
	if (g->type != PT_LINK)
		pt_need(t, chmod("x", g->mode) == 0, "chmod");
	pt_become(t, g->whom->uid, g->whom->gid);
	pt_did(t, "chown", lchown("x", g->owning->uid, g->owning->gid));
	pt_show(t, "x", "x");
}

/* What a user who mounted for himself may give away: nothing. */
static void
give_as_user(struct pt *t, const void *arg)
{
	(void)arg;
	pt_make(t, PT_FILE, "x");
	pt_become(t, PT_USER, PT_GROUP);
	pt_did(t, "self", chown("x", geteuid(), getegid()));
	pt_did(t, "root", chown("x", 0, (gid_t)-1));
	pt_did(t, "wheel", chown("x", (uid_t)-1, 0));
	pt_did(t, "none", chown("x", (uid_t)-1, (gid_t)-1));
	pt_show(t, "x", "x");
}

static void
cases_by_mode(struct pt_run *run)
{
	for (size_t w = 0; w < RSB_ARRAY_SIZE(whoms); w++) {
		for (size_t m = 0; m < RSB_ARRAY_SIZE(rights); m++) {
			const struct asking a = { .mode = rights[m], .whom = &whoms[w] };

			pt_case(run, may_use_file, &a, "owner.file %04o by %s", rights[m],
				whoms[w].name);
			pt_case(run, may_use_dir, &a, "owner.dir %04o by %s", rights[m],
				whoms[w].name);
		}
	}
}

static void
cases_of_sticky(struct pt_run *run)
{
	static const uid_t owners[] = { PT_USER, PT_USER + 9 };

	for (size_t a = 0; a < RSB_ARRAY_SIZE(acts); a++) {
		for (int k = 0; k < 4; k++) {
			struct sticking s = {
				.act = &acts[a],
				.whom = &whoms[0],
				.dir_owner = owners[k & 1],
				.file_owner = owners[k >> 1],
			};

			pt_case(run, sticky, &s, "owner.sticky %s, directory %s, file %s",
				acts[a].name, k & 1 ? "foreign" : "own",
				k >> 1 ? "foreign" : "own");
		}
	}
}

void
pt_cases_owners(struct pt_run *run)
{
	static const enum pt_type types[] = { PT_FILE, PT_DIR, PT_LINK };

	cases_by_mode(run);
	cases_of_sticky(run);
	for (size_t o = 0; o < RSB_ARRAY_SIZE(ownings); o++) {
		for (size_t w = 0; w < RSB_ARRAY_SIZE(whoms); w++) {
			for (size_t k = 0; k < RSB_ARRAY_SIZE(types); k++) {
				struct giving g = {
					.owning = &ownings[o],
					.whom = &whoms[w],
					.type = types[k],
					.mode = 0755,
				};

				pt_case(run, give, &g, "owner.chown %s to %s by %s",
					pt_type_names[types[k]], ownings[o].name, whoms[w].name);
				g.mode = 06755;
				if (types[k] != PT_LINK)
					pt_case(run, give, &g,
						"owner.chown %s with bits to %s by %s",
						pt_type_names[types[k]], ownings[o].name,
						whoms[w].name);
			}
		}
	}
	pt_case(run, give_as_user, NULL, "owner.chown by a user");
}
