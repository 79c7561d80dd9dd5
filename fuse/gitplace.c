/* SPDX-License-Identifier: MIT */
#include "fuse/gitplace.h"

#include <string.h>
#include <sys/stat.h>

#include "fuse/gitmarks.h"
#include "fuse/gitway.h"
#include "fuse/seen.h"
#include "keeper/gitnames.h"
#include "keeper/gitsteps.h"
#include "util/str.h"

/* What was seen in a directory. */
#define SEEN_OBJECTS 1u
#define SEEN_REFS 2u
#define SEEN_COMMONDIR 4u
#define SEEN_MANY 8u      /* the inode itself, at more places than are kept */
#define SEEN_DOT_GIT 16u  /* the inode itself, called .git */
#define SEEN_BEFORE 32u   /* the inode itself, at a place before its hint that may matter */
#define SEEN_ASTRAY 64u   /* the inode itself, moved by somebody else, from or to below .git */
#define SEEN_POINTER 128u /* the inode itself, called as what names files elsewhere */
#define SEEN_FORMATS 256u /* of the root: the first bit of rsb_gitplace_formats() */

#define MODULES_DEPTH_MAX 64u

#define SEEN_THERE (SEEN_OBJECTS | SEEN_REFS | SEEN_COMMONDIR) /* of a path, too */

static bool
is_one_of(struct rsb_bytes name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (rsb_str_is(name, names[i]))
			return true;
	}
	return false;
}

/* Directories of a repository, and what a file in them is. */
static const struct {
	const char *dir;
	const char *name; /* NULL: every */
	enum rsb_git_kind kind;
} inner[] = {
	{ "hooks", NULL, RSB_GIT_HOOK },
	{ "info", "attributes", RSB_GIT_ATTRIBUTES },
	{ "remotes", NULL, RSB_GIT_REMOTE },
	{ "branches", NULL, RSB_GIT_REMOTE },
	{ "reftable", "tables.list", RSB_GIT_TABLES },
	{ "rebase-apply", "patch-merge-index", RSB_GIT_INDEX },
};

static const char *const inner_names[] = { "hooks", "info", "remotes", "branches", "reftable",
	"rebase-apply", "rebase-merge", "sequencer", "worktrees" };

/* Those of operations that are half done. */
static const char *const step_names[] = { "rebase-apply", "rebase-merge", "sequencer" };

/* Files of a repository. */
static const struct {
	const char *name;
	enum rsb_git_kind kind;
} files[] = {
	{ "config", RSB_GIT_CONFIG },
	{ "config.worktree", RSB_GIT_CONFIG },
	{ "commondir", RSB_GIT_COMMONDIR },
	{ "gitdir", RSB_GIT_GITDIR },
	{ "MERGE_RR", RSB_GIT_RERERE },
	{ "BISECT_NAMES", RSB_GIT_OPTION },
};

/*
 * Wherever they are: what one of them names has such a file again, below any directory and by any
 * link on the way.
 */
static const char *const alternates[] = { "alternates", "http-alternates" };

/* ---- what was seen ---- */

/* What a directory is marked with that has this name in it; 0: nothing. */
static uint32_t
mark_of(struct rsb_bytes name)
{
	if (rsb_str_is(name, "objects"))
		return SEEN_OBJECTS;
	if (rsb_str_is(name, "refs"))
		return SEEN_REFS;
	return rsb_str_is(name, "commondir") ? SEEN_COMMONDIR : 0;
}

void
rsb_gitplace_seen(struct rsb_inode *inode, struct rsb_inode *dir, struct rsb_bytes name)
{
	if (mark_of(name))
		rsb_inode_note_git(dir, mark_of(name));
	else if (rsb_str_is(name, ".git"))
		rsb_inode_note_git(inode, SEEN_DOT_GIT);
	else if (rsb_str_is(name, "alternates") || rsb_str_is(name, "http-alternates") ||
		 rsb_str_is(name, "gitdir") || rsb_gitnames_kind(name) == RSB_GIT_PACKS ||
		 rsb_gitsteps_kind(name) != RSB_GIT_NONE)
		rsb_inode_note_git(inode, SEEN_POINTER);
}

/* Where it is now is what it was. */
static void
note_place(const struct rsb_inode *dir, uint32_t marks)
{
	if (marks)
		rsb_gitmarks_note(dir->set, rsb_gitmarks_path(dir), marks);
}

void
rsb_gitplace_given(struct rsb_inode *inode, const struct rsb_inode *dir, struct rsb_bytes name)
{
	note_place(dir, mark_of(name));
	/* The kernel may have names in it already, and not ask for them again. */
	if (S_ISDIR(inode->attr.mode))
		note_place(inode, inode->git_seen & SEEN_THERE);
	/* By which of its names it is followed nobody will say. */
	if (S_ISLNK(inode->attr.mode) && rsb_gitway_is_over(dir, name))
		rsb_gitplace_lose(inode);
}

void
rsb_gitplace_renamed(const struct rsb_inodes *inodes)
{
	const struct rsb_inode *inode;
	size_t cursor = 0;

	while ((inode = rsb_inode_next(inodes, &cursor))) {
		if (!inode->left)
			note_place(inode, inode->git_seen & SEEN_THERE);
	}
}

void
rsb_gitplace_lose(struct rsb_inode *inode)
{
	rsb_inode_note_git(inode, SEEN_MANY);
}

/*
 * The test of git's own is_git_directory(), but for HEAD: without that it is stricter. What is
 * called .git is nothing else, whoever looks at it.
 */
static bool
is_repository(const struct rsb_inode *dir)
{
	const uint32_t both = SEEN_OBJECTS | SEEN_REFS;
	uint32_t seen = dir->git_seen;

	if (seen & (SEEN_COMMONDIR | SEEN_DOT_GIT | SEEN_MANY) || (seen & both) == both)
		return true;
	seen |= rsb_gitmarks_of(
		dir->set, rsb_gitmarks_path(dir), SEEN_THERE | RSB_GITMARK_REPOSITORY);
	return seen & (SEEN_COMMONDIR | RSB_GITMARK_REPOSITORY) || (seen & both) == both;
}

/* Some place of dir is called name, in a repository. */
static bool
is_inner(const struct rsb_inode *dir, const char *wanted)
{
	const struct rsb_inode *parent;
	const char *name;

	for (size_t i = 0; rsb_gitplaces_at(dir, i, &parent, &name); i++) {
		if (parent && strcmp(name, wanted) == 0 && is_repository(parent))
			return true;
	}
	return dir->git_seen & SEEN_MANY;
}

/* A directory of a worktree, of which git looks at gitdir before it looks at commondir. */
static bool
is_worktree(const struct rsb_inode *dir)
{
	const struct rsb_inode *parent;
	const char *name;

	for (size_t i = 0; rsb_gitplaces_at(dir, i, &parent, &name); i++) {
		if (parent && is_inner(parent, "worktrees"))
			return true;
	}
	return false;
}

/* Of an operation that takes several commands of git's. */
static enum rsb_git_kind
kind_of_step(const struct rsb_inode *dir, const char *name)
{
	enum rsb_git_kind kind = rsb_gitsteps_kind(rsb_bytes_str(name));

	for (size_t i = 0; kind != RSB_GIT_NONE && i < RSB_ARRAY_SIZE(step_names); i++) {
		if (is_inner(dir, step_names[i]))
			return kind;
	}
	return RSB_GIT_NONE;
}

enum rsb_git_kind
rsb_gitplace_kind(const struct rsb_inode *dir, const char *name)
{
	enum rsb_git_kind kind = rsb_gitnames_kind(rsb_bytes_str(name));

	if (kind == RSB_GIT_PACKS)
		return kind;
	if ((kind == RSB_GIT_INDEX || rsb_gitnames_is_scratch(rsb_bytes_str(name))) &&
		is_repository(dir))
		return RSB_GIT_INDEX;
	if (strcmp(name, ".git") == 0)
		return RSB_GIT_GITFILE;
	if (is_one_of(rsb_bytes_str(name), alternates, RSB_ARRAY_SIZE(alternates)))
		return RSB_GIT_ALTERNATES;
	for (size_t i = 0; i < RSB_ARRAY_SIZE(files); i++) {
		if (strcmp(name, files[i].name) == 0 &&
			(is_repository(dir) ||
				(files[i].kind == RSB_GIT_GITDIR && is_worktree(dir))))
			return files[i].kind;
	}
	for (size_t i = 0; i < RSB_ARRAY_SIZE(inner); i++) {
		if (inner[i].name && strcmp(inner[i].name, name) != 0)
			continue;
		/* git runs no samples, and every repository is made with a dozen of them. */
		if (inner[i].kind == RSB_GIT_HOOK && rsb_str_ends_with(name, ".sample"))
			continue;
		if (is_inner(dir, inner[i].dir))
			return inner[i].kind;
	}
	kind = kind_of_step(dir, name);
	return kind == RSB_GIT_NONE && rsb_gitway_ends_at(dir, rsb_bytes_str(name)) ? RSB_GIT_AWAY
										    : kind;
}

/* ---- where it was seen before ---- */

bool
rsb_gitplace_could_be(const struct rsb_inode *dir, struct rsb_bytes name)
{
	const struct rsb_inode *parent;
	const char *called;

	if (rsb_gitnames_kind(name) != RSB_GIT_NONE || rsb_gitnames_is_scratch(name) ||
		rsb_str_is(name, ".git") ||
		is_one_of(name, alternates, RSB_ARRAY_SIZE(alternates)) ||
		is_one_of(name, inner_names, RSB_ARRAY_SIZE(inner_names)))
		return true;
	for (size_t i = 0; i < RSB_ARRAY_SIZE(files); i++) {
		if (rsb_str_is(name, files[i].name))
			return true;
	}
	for (size_t i = 0; dir && rsb_gitplaces_at(dir, i, &parent, &called); i++) {
		if (called &&
			is_one_of(rsb_bytes_str(called), inner_names, RSB_ARRAY_SIZE(inner_names)))
			return true;
	}
	return false;
}

void
rsb_gitplace_keep(struct rsb_inode *inode)
{
	const struct rsb_inode *dir = rsb_inode_by_nodeid(inode->set, inode->parent);

	if (!inode->name || !rsb_gitplace_could_be(dir, rsb_bytes_str(inode->name)) ||
		inode->git_seen & SEEN_MANY)
		return;
	rsb_inode_note_git(inode, rsb_gitplaces_keep(inode) ? SEEN_BEFORE : SEEN_MANY);
}

/* Some directory on the way from the root was called .git, dir included. */
static bool
is_below_git(const struct rsb_inode *dir)
{
	for (size_t n = 0; dir && n < RSB_SEEN_DEPTH_MAX; n++) {
		if (dir->git_seen & SEEN_DOT_GIT)
			return true;
		dir = rsb_inode_by_nodeid(dir->set, dir->parent);
	}
	return false;
}

void
rsb_gitplace_stray(struct rsb_inode *inode, const struct rsb_inode *dir, struct rsb_bytes name)
{
	const struct rsb_inode *before = rsb_inode_by_nodeid(inode->set, inode->parent);

	/* The first time, or as far as anybody knows after a crash where it was before that. */
	if (!inode->parent || (!inode->name && inode->parent == dir->nodeid))
		return;
	if (inode->git_seen & SEEN_DOT_GIT || rsb_str_is(name, ".git") || is_below_git(before) ||
		is_below_git(dir))
		rsb_inode_note_git(inode, SEEN_ASTRAY);
}

bool
rsb_gitplace_is_sure(const struct rsb_inode *inode)
{
	const struct rsb_inode *root = rsb_inode_root(inode->set);

	for (size_t n = 0; inode && n < RSB_SEEN_DEPTH_MAX; n++) {
		if (inode->git_seen & SEEN_ASTRAY)
			return false;
		if (inode == root)
			return true;
		inode = rsb_inode_by_nodeid(inode->set, inode->parent);
	}
	return false;
}

/* ---- questions ---- */

bool
rsb_gitplace_next(const struct rsb_inode *inode, size_t *cursor, struct rsb_gitplace *ret_place)
{
	const struct rsb_inode *dir;
	const char *name;

	while (rsb_gitplaces_at(inode, *cursor, &dir, &name)) {
		enum rsb_git_kind kind = dir ? rsb_gitplace_kind(dir, name) : RSB_GIT_NONE;

		++*cursor;
		if (kind == RSB_GIT_NONE)
			continue;
		*ret_place = (struct rsb_gitplace){ .kind = kind, .dir = dir, .name = name };
		return true;
	}
	if (*cursor == SIZE_MAX || !(inode->git_seen & SEEN_MANY))
		return false;
	/*
	 * The strictest that there is: read as a configuration, run as nothing. A value of that may
	 * be a line of a list of directories, so what was called so is not read at all.
	 */
	*cursor = SIZE_MAX;
	*ret_place = (struct rsb_gitplace){
		.kind = inode->git_seen & SEEN_POINTER ? RSB_GIT_HOOK : RSB_GIT_CONFIG,
	};
	return true;
}

bool
rsb_gitplace_matters(const struct rsb_inode *inode)
{
	struct rsb_gitplace place;
	size_t cursor = 0;

	return S_ISREG(inode->attr.mode) && rsb_gitplace_next(inode, &cursor, &place);
}

bool
rsb_gitplace_is_lost(const struct rsb_inode *inode)
{
	const struct rsb_inode *dir;

	if (!S_ISREG(inode->attr.mode) || inode->name)
		return false;
	if (inode->git_seen & (SEEN_DOT_GIT | SEEN_BEFORE | SEEN_POINTER))
		return true;
	dir = rsb_inode_by_nodeid(inode->set, inode->parent);
	if (!dir || is_repository(dir))
		return true;
	/* The directory of hooks, perhaps. */
	dir = rsb_inode_by_nodeid(inode->set, dir->parent);
	return dir && is_repository(dir);
}

/* Some directory on the way from the root was called modules, dir included. */
static bool
is_below_modules(const struct rsb_inode *dir)
{
	const struct rsb_inode *parent;
	const char *name;

	for (size_t n = 0; dir && n < RSB_SEEN_DEPTH_MAX; n++) {
		for (size_t i = 0; rsb_gitplaces_at(dir, i, &parent, &name); i++) {
			if (name && strcmp(name, "modules") == 0)
				return true;
		}
		if (dir->git_seen & SEEN_MANY)
			return true;
		dir = rsb_inode_by_nodeid(dir->set, dir->parent);
	}
	return false;
}

/* In the directory in which the repositories of submodules are, whose names may be paths. */
static bool
is_among_modules(const struct rsb_inode *dir)
{
	if (!is_below_modules(dir))
		return false;
	for (size_t n = 0; dir && !is_repository(dir); n++) {
		/* Each question walks all the way up: nobody has repositories so far below. */
		if (n == MODULES_DEPTH_MAX || is_inner(dir, "modules"))
			return true;
		dir = rsb_inode_by_nodeid(dir->set, dir->parent);
	}
	return false;
}

/* Called .git before, or somewhere else too, as far as a process that died knew. */
static bool
was_dot_git(const struct rsb_inode *link)
{
	return link->git_seen & SEEN_DOT_GIT &&
	       (!link->name || strcmp(link->name, ".git") != 0 ||
		       (link->git_seen & SEEN_BEFORE && !link->git_places));
}

bool
rsb_gitplace_is_link(const struct rsb_inode *inode)
{
	const struct rsb_inode *dir;
	const char *name;

	if (!S_ISLNK(inode->attr.mode))
		return false;
	for (size_t i = 0; rsb_gitplaces_at(inode, i, &dir, &name); i++) {
		enum rsb_git_kind kind = dir ? rsb_gitplace_kind(dir, name) : RSB_GIT_NONE;

		/* What .git leads to is looked at there. */
		if (kind != RSB_GIT_NONE && kind != RSB_GIT_GITFILE)
			return true;
		if (dir && is_repository(dir) &&
			(is_one_of(rsb_bytes_str(name), inner_names, RSB_ARRAY_SIZE(inner_names)) ||
				strcmp(name, "modules") == 0))
			return true;
		if (dir && (is_inner(dir, "worktrees") || is_among_modules(dir)))
			return true;
	}
	return inode->git_seen & SEEN_MANY || was_dot_git(inode) || rsb_gitway_is_over_link(inode);
}

void
rsb_gitplace_follow(const struct rsb_inode *link, const char *mountpoint, struct rsb_bytes target)
{
	const struct rsb_inode *dir;
	const char *name;

	for (size_t i = 0; rsb_gitplaces_at(link, i, &dir, &name); i++) {
		if (dir && strcmp(name, ".git") == 0)
			rsb_gitway_lead(dir, mountpoint, target);
	}
}

bool
rsb_gitplace_is_near(const struct rsb_inode *inode)
{
	const struct rsb_inode *dir = rsb_inode_by_nodeid(inode->set, inode->parent);

	if (!inode->name || !dir)
		return false;
	return is_repository(dir) || strcmp(inode->name, ".git") == 0 ||
	       (dir->name && (rsb_str_ends_with(dir->name, ".git") ||
				     is_one_of(rsb_bytes_str(dir->name), inner_names,
					     RSB_ARRAY_SIZE(inner_names))));
}

void
rsb_gitplace_note_formats(struct rsb_inodes *inodes, unsigned int formats)
{
	rsb_inode_note_git(rsb_inode_root(inodes), formats * SEEN_FORMATS);
}

unsigned int
rsb_gitplace_formats(const struct rsb_inodes *inodes)
{
	return rsb_inode_root(inodes)->git_seen / SEEN_FORMATS;
}
