/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITNAMES_H
#define RSB_GITNAMES_H

/*
 * The files of a repository that hold names which git joins to a directory without a look at them:
 * the index (of files in the working tree, which git writes and removes), a multi-pack-index (of
 * packs; gitformat-pack(5)) and the list of reftable's tables. One with a name that leads elsewhere
 * is given to nobody: there is nothing harmless to take its place. Pure.
 */

#include "keeper/gitallow.h"
#include "keeper/gitindex.h"

#define RSB_GITNAMES_MAX RSB_GITINDEX_MAX /* bytes of an index or multi-pack-index */

/*
 * What a file called so is, in whatever directory: an index, packs or none of them. Tables are
 * where reftable keeps them alone. With the letters of either case.
 */
enum rsb_git_kind rsb_gitnames_kind(struct rsb_bytes name);
/* In a repository's directory: an index that one command of git writes and another reads. */
bool rsb_gitnames_is_scratch(struct rsb_bytes name);

/*
 * Whether ids of objects are of SHA-1 or SHA-256, which an index does not say and which decides
 * where in it the names are: a set of bits, as the configurations that git was given have it.
 */
#define RSB_GITNAMES_SHA1 1u
#define RSB_GITNAMES_SHA256 2u
unsigned int rsb_gitnames_formats(struct rsb_bytes config);
/* Bytes of an id; without any bit those of SHA-1. 0: it may be either. */
size_t rsb_gitnames_id_size(unsigned int formats);

/* It is one of these kinds. */
bool rsb_gitnames_holds(enum rsb_git_kind kind);
/* rsb_gitallow_judge() for one of them. */
rsb_nodiscard int rsb_gitnames_judge(
	const struct rsb_gitallow *what, char why[static RSB_GITALLOW_WHY_MAX]);

#endif
