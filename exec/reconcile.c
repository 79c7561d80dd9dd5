/* SPDX-License-Identifier: MIT */
#include "exec/reconcile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/where.h"
#include "keeper/gitout.h"
#include "keeper/manifest.h"
#include "keeper/stage.h"
#include "keeper/syncbeside.h"
#include "util/beneath.h"
#include "util/cleanup.h"
#include "util/str.h"

#define SHOWN_MAX 256u

struct resolve {
	const struct rsb_reconcile *what;
	char *path; /* below the directory; "": all */
	struct rsb_tree old;
	struct rsb_tree next; /* the record as it will be */
	struct rsb_tree here; /* looked at when it is needed */
	bool looked;
	int root_fd;
	char *last_unit; /* that was counted */
	/* A directory that was in conflict with a file: what is in it is as new. Of old. */
	const char *clashed;
	struct rsb_reconciled resolved;
};

static void
resolve_done(struct resolve *resolve)
{
	free(resolve->path);
	free(resolve->last_unit);
	rsb_tree_done(&resolve->old);
	rsb_tree_done(&resolve->next);
	rsb_tree_done(&resolve->here);
	rsb_cleanup_close(&resolve->root_fd);
}

static int
find_dir(const char *dir, const char *path, char **ret_path, struct rsb_diag *diag)
{
	rsb_autofree char *where = realpath(path, NULL);
	const char *below;

	if (!where)
		return rsb_diag_set(diag, -errno, "%s: %s", path, strerror(errno));
	below = rsb_where_below(where, dir);
	if (!below)
		return rsb_diag_set(diag, -EINVAL, "%s is not in %s", path, dir);
	*ret_path = strdup(below);
	return *ret_path ? 0 : -ENOMEM;
}

/* path as given, below the directory. Caller frees. */
static int
find_path(const char *dir, const char *path, char **ret_path, struct rsb_diag *diag)
{
	rsb_autofree char *folder = NULL;
	rsb_autofree char *where = NULL;
	const char *slash = strrchr(path, '/');
	const char *below;
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return find_dir(dir, path, ret_path, diag);
	folder = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".");
	where = folder ? realpath(folder, NULL) : NULL;
	if (!where)
		return rsb_diag_set(diag, -errno, "%s: %s", path, strerror(errno));
	below = rsb_where_below(where, dir);
	if (!below)
		return rsb_diag_set(diag, -EINVAL, "%s is not in %s", path, dir);
	*ret_path = below[0] ? rsb_str_path(below, slash ? slash + 1 : path)
			     : strdup(slash ? slash + 1 : path);
	return *ret_path ? 0 : -ENOMEM;
}

/* Theirs takes the place of ours, or goes. */
static int
settle_files(const char *dir, const char *path, const struct rsb_tree_leaf *leaf, bool theirs)
{
	rsb_autoclose int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rsb_autofree char *beside = rsb_syncbeside_name(path);
	const char *name, *beside_name;
	rsb_autoclose int folder = -1;
	rsb_autoclose int beside_folder = -1;

	if (root < 0 || !beside)
		return root < 0 ? -errno : -ENOMEM;
	folder = rsb_beneath_parent(root, path, &name);
	beside_folder = rsb_beneath_parent(root, beside, &beside_name);
	/* A directory that is gone has neither. */
	if (folder < 0 || beside_folder < 0)
		return theirs && leaf->mode ? folder : 0;
	if (theirs && leaf->mode)
		return renameat(beside_folder, beside_name, folder, name) < 0 ? -errno : 0;
	if (unlinkat(beside_folder, beside_name, 0) < 0 && errno != ENOENT)
		return -errno;
	if (theirs && unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* ---- repositories ---- */

static struct rsb_tree_leaf *
look_here(struct resolve *resolve, const char *path)
{
	if (!resolve->looked)
		resolve->looked = rsb_tree_walk(&resolve->here, resolve->root_fd, NULL) >= 0;
	return resolve->looked ? rsb_tree_find(&resolve->here, path) : NULL;
}

/* Noted as synced as it is here, so that what is there has changed since. */
static int
take_later(struct resolve *resolve, const char *path)
{
	struct rsb_tree_leaf *here = look_here(resolve, path);

	/* What cannot be read has changed here, too, for the next sync. */
	if (rsb_tree_leaf_is(here, S_IFREG))
		(void)rsb_tree_hash(resolve->root_fd, here);
	return here ? rsb_tree_add(&resolve->next, here) : 0;
}

static int
count_unit(struct resolve *resolve, const char *path, size_t root)
{
	rsb_autofree char *unit = strndup(path, root);

	if (!unit)
		return -ENOMEM;
	if (resolve->last_unit && strcmp(resolve->last_unit, unit) == 0)
		return 0;
	free(resolve->last_unit);
	resolve->last_unit = rsb_steal(&unit);
	resolve->resolved.n++;
	resolve->resolved.later++;
	return 0;
}

/* ---- all ---- */

static bool
is_meant(const struct resolve *resolve, const char *path)
{
	size_t n = strlen(resolve->path);

	return !n || (strncmp(path, resolve->path, n) == 0 && (!path[n] || path[n] == '/'));
}

/* What is named in a repository is all of that. */
static void
widen(struct resolve *resolve)
{
	struct rsb_gitout_place place;

	if (rsb_gitout_find(resolve->path, &resolve->old, &resolve->old, &place))
		resolve->path[place.root] = '\0';
}

/* In a repository that counts as one; of what is in no conflict, objects alone matter. */
static bool
is_in_unit(const struct resolve *resolve, const struct rsb_tree_leaf *leaf,
	struct rsb_gitout_place *ret_place)
{
	return (leaf->conflict || strcasestr(leaf->path, "objects")) &&
	       rsb_gitout_find(leaf->path, &resolve->old, &resolve->old, ret_place) &&
	       (leaf->conflict || ret_place->part == RSB_GITOUT_OBJECT);
}

/* Of a repository, or a directory, it is noted what is to be; the next sync does it. */
static int
resolve_in_unit(struct resolve *resolve, struct rsb_tree_leaf *leaf, size_t root)
{
	const bool conflict = leaf->conflict;
	int r = conflict ? count_unit(resolve, leaf->path, root) : 0;

	if (r < 0)
		return r;
	leaf->conflict = false;
	/* An object that a gc took away here may be needed by what is there. */
	return resolve->what->theirs && (conflict || !look_here(resolve, leaf->path))
		       ? take_later(resolve, leaf->path)
		       : rsb_tree_add(&resolve->next, leaf);
}

/* The copy goes in any case: the next sync brings what is there then. */
static int
resolve_dir(struct resolve *resolve, struct rsb_tree_leaf *leaf)
{
	rsb_autofree char *beside = rsb_syncbeside_name(leaf->path);
	int r = beside ? rsb_stage_remove(resolve->root_fd, beside) : -ENOMEM;

	if (r < 0)
		return r;
	/* Ours goes over it, and over what it was. */
	if (resolve->what->theirs)
		resolve->clashed = leaf->path;
	return resolve_in_unit(resolve, leaf, strlen(leaf->path));
}

/* Theirs is a file: with it all of the directory here is noted as synced, so that it goes. */
static int
resolve_dir_here(struct resolve *resolve, struct rsb_tree_leaf *leaf)
{
	rsb_autofree char *beside = rsb_syncbeside_name(leaf->path);
	int r = beside ? rsb_stage_remove(resolve->root_fd, beside) : -ENOMEM;

	if (r < 0)
		return r;
	resolve->clashed = leaf->path;
	resolve->resolved.n++;
	leaf->conflict = false;
	if (!resolve->what->theirs)
		return rsb_tree_add(&resolve->next, leaf);
	resolve->resolved.later++;
	r = take_later(resolve, leaf->path);
	for (size_t i = 0; i < resolve->here.n && r >= 0; i++)
		if (rsb_str_is_below(resolve->here.leaves[i].path, leaf->path))
			r = take_later(resolve, resolve->here.leaves[i].path);
	return r;
}

static int
resolve_leaf(struct resolve *resolve, struct rsb_tree_leaf *leaf)
{
	const struct rsb_reconcile *what = resolve->what;
	struct rsb_gitout_place place;
	int r;

	if (resolve->clashed && rsb_str_is_below(leaf->path, resolve->clashed))
		return 0;
	if (is_meant(resolve, leaf->path) && is_in_unit(resolve, leaf, &place))
		return resolve_in_unit(resolve, leaf, place.root);
	if (leaf->conflict && S_ISDIR(leaf->mode) && is_meant(resolve, leaf->path))
		return resolve_dir(resolve, leaf);
	if (leaf->conflict && is_meant(resolve, leaf->path) &&
		rsb_tree_leaf_is(look_here(resolve, leaf->path), S_IFDIR))
		return resolve_dir_here(resolve, leaf);
	if (leaf->conflict && is_meant(resolve, leaf->path)) {
		r = settle_files(what->dir, leaf->path, leaf, what->theirs);
		if (r < 0)
			return r;
		/* The leaf is what is there: ours has changed since then, theirs has not. */
		leaf->conflict = false;
		resolve->resolved.n++;
	}
	return rsb_tree_add(&resolve->next, leaf);
}

/* As far as it goes: the rest stays in conflict. */
static int
resolve_all(struct resolve *resolve, struct rsb_diag *diag)
{
	char shown[SHOWN_MAX];
	int r = 0;

	for (size_t i = 0; i < resolve->old.n; i++) {
		struct rsb_tree_leaf *leaf = &resolve->old.leaves[i];
		int one = r < 0 ? r : resolve_leaf(resolve, leaf);

		if (one < 0 && r == 0) {
			rsb_str_escape(rsb_bytes_str(leaf->path), shown, sizeof(shown));
			r = rsb_diag_set(diag, one, "%s cannot be resolved: %s", shown,
				rsb_diag_text(NULL, one));
		}
		if (one < 0 && rsb_tree_add(&resolve->next, leaf) < 0)
			return -ENOMEM;
	}
	return r;
}

static int
open_record(struct resolve *resolve, struct rsb_diag *diag)
{
	const struct rsb_reconcile *what = resolve->what;
	int r;

	r = what->path ? find_path(what->dir, what->path, &resolve->path, diag) : 0;
	if (r < 0)
		return r;
	if (!resolve->path)
		resolve->path = strdup("");
	if (!resolve->path)
		return -ENOMEM;
	resolve->root_fd = open(what->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (resolve->root_fd < 0)
		return rsb_diag_set(diag, -errno, "%s: %s", what->dir, strerror(errno));
	r = rsb_manifest_load(what->state_dir, &resolve->old);
	if (r < 0 && r != -ENOENT)
		return rsb_diag_set(
			diag, r, "the record of the last sync cannot be read: %s", strerror(-r));
	widen(resolve);
	return 0;
}

int
rsb_reconcile(const struct rsb_reconcile *what, struct rsb_reconciled *ret_resolved,
	struct rsb_diag *diag)
{
	RSB_CLEANUP(resolve_done) struct resolve resolve = { .what = what, .root_fd = -1 };
	int r, saved;

	r = open_record(&resolve, diag);
	if (r < 0)
		return r;
	r = resolve_all(&resolve, diag);
	if (r >= 0 && !resolve.resolved.n)
		return rsb_diag_set(diag, -ENOENT,
			"%s is in no conflict that a sync out has met, which brings theirs beside it; "
			"'rsb sync out' first, or see 'rsb sync status'",
			what->path ? what->path : what->dir);
	saved = rsb_manifest_save(what->state_dir, &resolve.next, true);
	if (saved < 0)
		return rsb_diag_set(diag, saved, "it cannot be noted: %s", strerror(-saved));
	if (r >= 0)
		*ret_resolved = resolve.resolved;
	return r;
}
