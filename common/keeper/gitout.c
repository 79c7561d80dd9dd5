/* SPDX-License-Identifier: MIT */
#include "keeper/gitout.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "keeper/gitconfig.h"
#include "keeper/gitnames.h"
#include "keeper/gitsteps.h"
#include "util/cleanup.h"
#include "util/str.h"

#define BRINGS "; 'rsb sync out --trust-git' brings it"
#define WHY_FILE "git here would take orders from it" BRINGS
#define WHY_REPO "it would make its directory a repository for git here" BRINGS

static bool
is_name(const char *name, size_t size, const char *what)
{
	return strlen(what) == size && strncasecmp(name, what, size) == 0;
}

/* A component below a repository's directory from which, or below which, git takes orders. */
static bool
gives_orders(const char *name, size_t size)
{
	static const char *const names[] = { "hooks", "commondir", "gitdir", "remotes", "branches",
		"attributes", "alternates", "http-alternates", "MERGE_AUTOSTASH" };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++)
		if (is_name(name, size, names[i]))
			return true;
	for (size_t i = 0; rsb_gitsteps_dirs[i]; i++)
		if (is_name(name, size, rsb_gitsteps_dirs[i]))
			return true;
	for (size_t i = 0; rsb_gitsteps_files[i].name; i++)
		if (is_name(name, size, rsb_gitsteps_files[i].name))
			return true;
	return size >= 6 && strncasecmp(name, "config", 6) == 0;
}

/* below: a path in a repository's directory, of a branch or its log. */
static bool
is_named_by_anybody(const char *below)
{
	size_t size = strcspn(below, "/");

	return below[size] && (is_name(below, size, "refs") || is_name(below, size, "logs"));
}

/* In a directory of hooks, and git runs it by no name that it may have. */
static bool
is_sample(const char *name)
{
	return rsb_str_ends_with(name, ".sample") && !strchr(name, '/');
}

/*
 * below: a path in a repository's directory. Branches and objects have their names from anybody;
 * what is in modules and worktrees are repositories again, at any depth.
 */
static bool
is_order(const char *below)
{
	size_t size;

	if (is_named_by_anybody(below))
		return false;
	for (const char *p = below; *p; p += size + (p[size] == '/')) {
		size = strcspn(p, "/");
		if (is_name(p, size, "hooks") && p[size] && is_sample(p + size + 1))
			return false;
		if (gives_orders(p, size))
			return true;
	}
	return false;
}

static const struct rsb_tree_leaf *
find_in(const struct rsb_tree *tree, const char *dir, size_t size, const char *name)
{
	rsb_autofree char *path = rsb_str_printf("%.*s%s%s", (int)size, dir, size ? "/" : "", name);

	return path ? rsb_tree_find(tree, path) : NULL;
}

/* Whether git would take the directory for a repository. b may be NULL. */
static bool
is_repository(const char *dir, size_t size, const struct rsb_tree *a, const struct rsb_tree *b)
{
	static const char *const names[] = { "HEAD", "objects", "refs", "commondir" };
	bool has[RSB_ARRAY_SIZE(names)];

	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++) {
		has[i] = find_in(a, dir, size, names[i]) || (b && find_in(b, dir, size, names[i]));
		if (!has[0])
			return false;
	}
	return (has[1] && has[2]) || has[3];
}

/* The path behind the first component ".git"; NULL: there is none. */
static const char *
behind_git(const char *path, bool *ret_itself)
{
	for (const char *p = path; *p;) {
		size_t size = strcspn(p, "/");

		if (is_name(p, size, ".git")) {
			*ret_itself = !p[size];
			return p + size + (p[size] == '/');
		}
		p += size + (p[size] == '/');
	}
	return NULL;
}

/* In a repository that is no ".git", or would become one; directories before from do not count. */
static const char *
held_elsewhere(const char *path, const char *from, const struct rsb_tree *here,
	const struct rsb_tree *there)
{
	static const char *const makes[] = { "HEAD", "objects", "refs", "commondir" };

	for (const char *slash = from; slash; slash = strchr(slash + 1, '/')) {
		const size_t size = slash == path ? 0 : (size_t)(slash - path);
		const char *below = size ? slash + 1 : path;

		if (is_order(below) && is_repository(path, size, here, NULL))
			return WHY_FILE;
		for (size_t i = 0; i < RSB_ARRAY_SIZE(makes); i++) {
			size_t n = strcspn(below, "/");

			if (is_name(below, n, makes[i]) && !is_repository(path, size, here, NULL) &&
				is_repository(path, size, here, there))
				return WHY_REPO;
		}
	}
	return NULL;
}

const char *
rsb_gitout_held(
	const struct rsb_tree_leaf *leaf, const struct rsb_tree *here, const struct rsb_tree *there)
{
	bool itself = false;
	const char *below = behind_git(leaf->path, &itself);

	if (!below)
		return held_elsewhere(leaf->path, leaf->path, here, there);
	if (itself)
		return S_ISDIR(leaf->mode) ? NULL : WHY_FILE;
	/* What a link leads to has another name. */
	if (S_ISLNK(leaf->mode) || is_order(below))
		return WHY_FILE;
	/* What looks like branches may be another repository. */
	if (is_named_by_anybody(below))
		return held_elsewhere(leaf->path, strchr(below, '/'), here, there);
	return NULL;
}

bool
rsb_gitout_is_settings(const char *path)
{
	bool itself = false;
	const char *below = behind_git(path, &itself);
	rsb_autofree char *dir = below ? strdup(below) : NULL;
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!dir || !rsb_gitconfig_is_config(path) || is_named_by_anybody(below))
		return false;
	if (slash)
		*slash = '\0';
	return !slash || !is_order(dir);
}

enum rsb_git_kind
rsb_gitout_list(const char *path)
{
	static const char tables[] = "reftable/tables.list";
	const size_t size = strlen(path);
	const size_t n = strlen(tables);
	const char *slash = strrchr(path, '/');

	if (size > n && path[size - n - 1] == '/' && strcasecmp(path + size - n, tables) == 0)
		return RSB_GIT_TABLES;
	return rsb_gitnames_kind(rsb_bytes_str(slash ? slash + 1 : path));
}

/* ---- parts ---- */

static bool
is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* name, in a directory "objects", is one that git makes. */
static bool
is_of_objects(const char *name)
{
	size_t size = strcspn(name, "/");

	return size == 0 || is_name(name, size, "pack") || is_name(name, size, "info") ||
	       (size == 2 && is_hex(name[0]) && is_hex(name[1]));
}

static bool
is_scratch(const char *name, size_t size)
{
	static const char *const names[] = { "COMMIT_EDITMSG", "FETCH_HEAD", "ORIG_HEAD", "gc.log",
		"gc.pid" };

	for (size_t i = 0; i < RSB_ARRAY_SIZE(names); i++)
		if (is_name(name, size, names[i]))
			return true;
	return false;
}

/* below: a path in a repository's directory. */
static enum rsb_gitout_part
part_of(const char *below)
{
	size_t size;

	if (is_named_by_anybody(below))
		return RSB_GITOUT_OTHER;
	for (const char *p = below; *p; p += size + (p[size] == '/')) {
		size = strcspn(p, "/");
		if (is_name(p, size, "objects") && is_of_objects(p + size + (p[size] == '/')))
			return RSB_GITOUT_OBJECT;
		if (!p[size] && is_scratch(p, size))
			return RSB_GITOUT_SCRATCH;
	}
	return RSB_GITOUT_OTHER;
}

bool
rsb_gitout_find(const char *path, const struct rsb_tree *here, const struct rsb_tree *there,
	struct rsb_gitout_place *ret_place)
{
	size_t size = 0;

	for (const char *p = path;; p = path + size + 1) {
		if (is_repository(path, size, here, NULL) || is_repository(path, size, there, NULL))
			break;
		size = (size_t)(p - path) + strcspn(p, "/");
		if (!path[size])
			return false;
		if (is_name(p, size - (size_t)(p - path), ".git"))
			break;
	}
	*ret_place = (struct rsb_gitout_place){ .root = size,
		.part = part_of(path + size + (size > 0)) };
	return true;
}
