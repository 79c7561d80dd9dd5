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

/* Where dir is now has these marks, bits of the caller's, from now on. */
void rsb_gitmarks_note(const struct rsb_inode *dir, uint32_t marks);
/* Those of marks that it has; all when nobody knows where it is. */
uint32_t rsb_gitmarks_of(const struct rsb_inode *dir, uint32_t marks);

#endif
