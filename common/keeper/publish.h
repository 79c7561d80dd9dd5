/* SPDX-License-Identifier: MIT */
#ifndef RSB_PUBLISH_H
#define RSB_PUBLISH_H

/*
 * Puts what is staged in its places below a directory, and takes away what shall go, all by
 * renames between the two, so that nothing needs room and everything can be taken back: a failure
 * on the way leaves the tree as it was. What was replaced or removed lies in the staging
 * directory. A name whose inode is not the expected one any more is left alone. One thread.
 */

#include "keeper/tree.h"

struct rsb_publish;

/* Both descriptors are borrowed, of one file system. */
rsb_nodiscard int rsb_publish_new(int root_fd, int stage_fd, struct rsb_publish **ret_publish);
/* NULL is fine. Takes nothing back. */
void rsb_publish_free(struct rsb_publish *publish);
RSB_DEFINE_CLEANUP(struct rsb_publish *, rsb_publish_free)

/* A directory that is there already is fine. */
rsb_nodiscard int rsb_publish_dir(struct rsb_publish *publish, const char *path);
/*
 * staged (below the staging directory) becomes path. expected: what is there now; NULL: nothing.
 * -EAGAIN: something else.
 */
rsb_nodiscard int rsb_publish_put(struct rsb_publish *publish, const char *path, const char *staged,
	const struct rsb_stamp *expected);
/* A directory only when it is empty: -ENOTEMPTY. */
rsb_nodiscard int rsb_publish_remove(
	struct rsb_publish *publish, const char *path, const struct rsb_stamp *expected);
rsb_nodiscard int rsb_publish_remove_dir(struct rsb_publish *publish, const char *path);
/* Whatever is there, with all that is in it. */
rsb_nodiscard int rsb_publish_away(struct rsb_publish *publish, const char *path);
/* Everything so far, from the last to the first. */
void rsb_publish_undo(struct rsb_publish *publish);

#endif
