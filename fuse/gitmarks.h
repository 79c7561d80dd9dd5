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
 * marks that nobody set, which hides from nobody that they have them. Which places these are the
 * sandbox cannot work out: what is hashed begins with a random word.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/seen.h"

/* Beside bits of the caller's. */
#define RSB_GITMARK_REPOSITORY (1u << 30) /* something leads git there */
#define RSB_GITMARK_WAY (1u << 31)        /* and over this, or to it */

#define RSB_GITMARKS_WAY_MAX (RSB_SEEN_DEPTH_MAX + 1)

/* The path of dir, hashed; 0: nobody knows it. */
uint64_t rsb_gitmarks_path(const struct rsb_inode *dir);
/* Those from the root to dir. How many there are; 0: nobody knows. */
size_t rsb_gitmarks_way(const struct rsb_inode *dir, uint64_t ret_paths[RSB_GITMARKS_WAY_MAX]);
/* That of name in path; it need not be there. */
uint64_t rsb_gitmarks_below(uint64_t path, struct rsb_bytes name);

/* It has these marks from now on. */
void rsb_gitmarks_note(const struct rsb_inodes *inodes, uint64_t path, uint32_t marks);
/* Those of marks that it has; all when nobody knows where that is. */
uint32_t rsb_gitmarks_of(const struct rsb_inodes *inodes, uint64_t path, uint32_t marks);

#endif
