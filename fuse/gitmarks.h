/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITMARKS_H
#define RSB_GITMARKS_H

/*
 * What was seen in directories, by where they were: a path below the root keeps its marks, whatever
 * directory is moved there, or to where one above it was. Git names a repository by its path, and
 * looks at that again for each file.
 *
 * In the shared mapping, a set of bits into which each mark of each path is spread (a Bloom
 * filter): nothing is ever forgotten, or too much. The more there is in it the more places have
 * marks that nobody set, which hides from nobody that they have them.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/inode.h"

/* Beside bits of the caller's. */
#define RSB_GITMARK_NOWHERE (1u << 29)    /* never noted */
#define RSB_GITMARK_REPOSITORY (1u << 30) /* something leads git there */
#define RSB_GITMARK_WAY (1u << 31)        /* and over this, or to it */

/* A path: the first n of names, each in the one before, in dir. It need not be there. */
struct rsb_gitmarks_place {
	const struct rsb_inode *dir;
	const struct rsb_bytes *names;
	size_t n;
};

/* It has these marks from now on. */
void rsb_gitmarks_note(const struct rsb_gitmarks_place *place, uint32_t marks);
/* Those of marks that it has; all when nobody knows where that is. */
uint32_t rsb_gitmarks_of(const struct rsb_gitmarks_place *place, uint32_t marks);

#endif
