/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITOUT_H
#define RSB_GITOUT_H

/*
 * What a sync never brings out of a sandbox: files from which git on this machine runs programs, or
 * that make a directory a repository which it would take them from; and which part of a repository
 * a file is. By names alone, whatever they hold, and with the letters of either case, since a file
 * system may not tell them apart. Pure.
 */

#include "keeper/gitallow.h"
#include "keeper/tree.h"

/*
 * Why path stays there; NULL: it may come. leaf: what it would be here; here, there: what there is
 * on both sides.
 */
const char *rsb_gitout_held(const struct rsb_tree_leaf *leaf, const struct rsb_tree *here,
	const struct rsb_tree *there);

/* The settings of a repository, which may come in part (keeper/gitsettings.h). */
bool rsb_gitout_is_settings(const char *path);

/* Its kind, of those that hold names (keeper/gitnames.h), where it may be such a one. */
enum rsb_git_kind rsb_gitout_list(const char *path);

enum rsb_gitout_part {
	RSB_GITOUT_OTHER,
	RSB_GITOUT_OBJECT,  /* or a directory of some; its name says what it holds */
	RSB_GITOUT_SCRATCH, /* what a command of git leaves for the next, of no worth for long */
};
struct rsb_gitout_place {
	size_t root; /* bytes of path: the directory of the outermost repository that it is in */
	enum rsb_gitout_part part;
};
/* Where path is in a repository of either side; false: in none. */
bool rsb_gitout_find(const char *path, const struct rsb_tree *here, const struct rsb_tree *there,
	struct rsb_gitout_place *ret_place);

#endif
