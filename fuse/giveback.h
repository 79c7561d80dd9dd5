/* SPDX-License-Identifier: MIT */
#ifndef RSB_GIVEBACK_H
#define RSB_GIVEBACK_H

/*
 * Git changes a configuration by writing another file and renaming it over the first. What was held
 * back from it would be gone from the sandbox then, whose programs set it. So just before the
 * rename what was held back is appended to the new file, in one write: if that fails, the file is
 * what git wrote. The view of the result is what git wrote, again.
 *
 * What was held back is that of the latest look at the old file (fuse/held.h). Git looks at it
 * after it has made the lock, under which git in the sandbox changes nothing.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/fs.h"

/* A local program renames name in dir over newname in newdir; to be called before that is sent. */
void rsb_giveback(struct rsb_fs *fs, const struct rsb_inode *dir, const char *name,
	const struct rsb_inode *newdir, const char *newname);

#endif
