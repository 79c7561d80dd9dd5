/* SPDX-License-Identifier: MIT */
#include "keeper/snaptree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"
#include "util/str.h"
#include "util/walk.h"

bool
rsb_snaptree_holds(const struct rsb_tree_leaf *leaf)
{
	return S_ISREG(leaf->mode) || S_ISDIR(leaf->mode) || S_ISLNK(leaf->mode);
}

static void
free_leaf(struct rsb_tree_leaf *leaf)
{
	free(leaf->path);
	free(leaf->target);
}

static size_t
text_of(const struct rsb_tree_leaf *leaf)
{
	return strlen(leaf->path) + strlen(leaf->target);
}

/* Moves leaf to the end, which has room. */
static void
move(struct rsb_tree *to, const struct rsb_tree_leaf *leaf)
{
	to->leaves[to->n++] = *leaf;
	to->text += text_of(leaf);
}

int
rsb_snaptree_overlay(struct rsb_tree *tree, struct rsb_tree *delta, bool bury)
{
	struct rsb_tree both = { .cap = tree->n + delta->n };
	size_t t = 0;
	size_t d = 0;

	if (!delta->n)
		return 0;
	both.leaves = rsb_new_array(struct rsb_tree_leaf, both.cap);
	if (!both.leaves)
		return -ENOMEM;
	while (t < tree->n || d < delta->n) {
		int order = t == tree->n ? 1
			    : d == delta->n
				    ? -1
				    : rsb_walk_compare(tree->leaves[t].path, delta->leaves[d].path);

		if (order < 0) {
			move(&both, &tree->leaves[t++]);
			continue;
		}
		if (order == 0)
			free_leaf(&tree->leaves[t++]);
		if (delta->leaves[d].mode || !bury)
			move(&both, &delta->leaves[d]);
		else
			free_leaf(&delta->leaves[d]);
		d++;
	}
	free(tree->leaves);
	free(delta->leaves);
	*tree = both;
	*delta = (struct rsb_tree){ 0 };
	return 0;
}

/* ---- what changed ---- */

bool
rsb_snaptree_is_unchanged(const struct rsb_tree_leaf *known, const struct rsb_tree_leaf *now)
{
	return known->mode == now->mode && known->size == now->size &&
	       strcmp(known->target, now->target) == 0 &&
	       rsb_stamp_is_same(&known->there, &now->there);
}

struct diff {
	const struct rsb_tree *now;
	bool *wanted; /* of each of now */
	struct rsb_tree *removed;
};

static int
want_parent(struct diff *diff, const char *path)
{
	const char *slash = strrchr(path, '/');
	rsb_autofree char *parent = slash ? strndup(path, (size_t)(slash - path)) : NULL;
	const struct rsb_tree_leaf *leaf;

	if (!slash)
		return 0;
	if (!parent)
		return -ENOMEM;
	leaf = rsb_tree_find(diff->now, parent);
	if (rsb_tree_leaf_is(leaf, S_IFDIR))
		diff->wanted[leaf - diff->now->leaves] = true;
	return 0;
}

static int
bury(struct diff *diff, const struct rsb_tree_leaf *leaf)
{
	const struct rsb_tree_leaf tombstone = { .path = leaf->path, .target = (char *)"" };
	int r = rsb_tree_add(diff->removed, &tombstone);

	return r < 0 ? r : want_parent(diff, leaf->path);
}

/* old: what it was; NULL: it was not there. */
static int
look(struct diff *diff, const struct rsb_tree_leaf *old, const struct rsb_tree_leaf *leaf)
{
	if (!rsb_snaptree_holds(leaf))
		return old ? bury(diff, old) : 0;
	if (old && rsb_snaptree_is_unchanged(old, leaf))
		return 0;
	diff->wanted[leaf - diff->now->leaves] = true;
	return want_parent(diff, leaf->path);
}

static int
compare(struct diff *diff, const struct rsb_tree *known)
{
	const struct rsb_tree *now = diff->now;
	const char *blind = NULL; /* the last directory that could not be listed */
	size_t k = 0;
	size_t n = 0;
	int r = 0;

	while ((k < known->n || n < now->n) && r >= 0) {
		const struct rsb_tree_leaf *old = k < known->n ? &known->leaves[k] : NULL;
		const struct rsb_tree_leaf *leaf = n < now->n ? &now->leaves[n] : NULL;
		int order = !old ? 1 : !leaf ? -1 : rsb_walk_compare(old->path, leaf->path);

		k += order <= 0;
		n += order >= 0;
		if (order >= 0 && leaf->blind)
			blind = leaf->path;
		if (order >= 0)
			r = look(diff, order == 0 ? old : NULL, leaf);
		else if (!blind || !rsb_str_is_below(old->path, blind))
			r = bury(diff, old);
	}
	return r;
}

int
rsb_snaptree_diff(const struct rsb_tree *known, const struct rsb_tree *now,
	struct rsb_tree *changed, struct rsb_tree *removed)
{
	rsb_autofree bool *wanted = rsb_new_array(bool, now->n + 1);
	struct diff diff = { .now = now, .wanted = wanted, .removed = removed };
	int r = wanted ? compare(&diff, known) : -ENOMEM;

	for (size_t i = 0; i < now->n && r >= 0; i++)
		if (wanted[i])
			r = rsb_tree_add(changed, &now->leaves[i]);
	return r;
}

int
rsb_snaptree_sort(const struct rsb_tree *said, struct rsb_tree *changed, struct rsb_tree *removed)
{
	const char *blind = NULL;
	int r = 0;

	for (size_t i = 0; i < said->n && r >= 0; i++) {
		const struct rsb_tree_leaf *leaf = &said->leaves[i];
		const struct rsb_tree_leaf gone = { .path = leaf->path, .target = (char *)"" };

		if (leaf->blind)
			blind = leaf->path;
		if (rsb_snaptree_holds(leaf))
			r = rsb_tree_add(changed, leaf);
		else if (!blind || !rsb_str_is_below(leaf->path, blind))
			r = rsb_tree_add(removed, &gone);
	}
	return r;
}

/* ---- on the way back ---- */

int
rsb_snaptree_obstacles(
	const struct rsb_tree *tree, const struct rsb_tree *delta, struct rsb_buf *paths)
{
	int r = 0;

	for (size_t i = delta->n; i-- > 0 && r >= 0;) {
		const struct rsb_tree_leaf *leaf = &delta->leaves[i];
		const struct rsb_tree_leaf *old = rsb_tree_find(tree, leaf->path);

		if (old && (!leaf->mode || S_ISDIR(leaf->mode) != S_ISDIR(old->mode)))
			r = rsb_buf_append(paths, leaf->path, strlen(leaf->path) + 1);
	}
	return r;
}

static bool
is_as_wanted(const struct rsb_tree_leaf *want, const struct rsb_tree_leaf *got)
{
	if ((want->mode & S_IFMT) != (got->mode & S_IFMT))
		return false;
	if (S_ISLNK(want->mode))
		return strcmp(want->target, got->target) == 0;
	if (want->mode != got->mode)
		return false;
	return !S_ISREG(want->mode) ||
	       (want->size == got->size && want->there.mtime_ns == got->there.mtime_ns);
}

const char *
rsb_snaptree_difference(
	const struct rsb_tree *want, const struct rsb_tree *other, const struct rsb_tree *got)
{
	size_t w = 0;
	size_t g = 0;

	while (w < want->n || g < got->n) {
		const struct rsb_tree_leaf *a = w < want->n ? &want->leaves[w] : NULL;
		const struct rsb_tree_leaf *b = g < got->n ? &got->leaves[g] : NULL;
		int order = !a ? 1 : !b ? -1 : rsb_walk_compare(a->path, b->path);

		if (order < 0 || (order == 0 && !is_as_wanted(a, b)))
			return a->path;
		if (order > 0 && !S_ISDIR(b->mode) && !rsb_tree_find(other, b->path))
			return b->path;
		w += order == 0;
		g++;
	}
	return NULL;
}
