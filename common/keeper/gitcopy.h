/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITCOPY_H
#define RSB_GITCOPY_H

/*
 * The last trusted copies of the files that git could run programs from (keeper/gitallow.h): by
 * their paths below the workspace, with their whole contents. What the user wrote through the mount
 * or accepted is here. Over RSB_GITCOPY_COPIES_MAX or RSB_GITCOPY_BYTES_MAX the oldest give way.
 * Kept in the file "trust" of the sandbox's state directory. No locks.
 */

#include <stdbool.h>

#include "util/buf.h"

#define RSB_GITCOPY_COPIES_MAX 1024u
#define RSB_GITCOPY_BYTES_MAX ((size_t)8 << 20)

struct rsb_gitcopy;

rsb_nodiscard int rsb_gitcopy_new(struct rsb_gitcopy **ret_trust);
void rsb_gitcopy_free(struct rsb_gitcopy *trust);
RSB_DEFINE_CLEANUP(struct rsb_gitcopy *, rsb_gitcopy_free)

/* false: there is none. Borrowed until the next change. */
bool rsb_gitcopy_get(const struct rsb_gitcopy *trust, const char *path, struct rsb_bytes *ret_text);
/* Replaces; text is copied. -EMSGSIZE, -ENOMEM. */
rsb_nodiscard int rsb_gitcopy_put(
	struct rsb_gitcopy *trust, const char *path, struct rsb_bytes text);
/* path was renamed: copies of it and of what is below it go along, over what was there. -ENOMEM. */
rsb_nodiscard int rsb_gitcopy_move(
	struct rsb_gitcopy *trust, const char *path, const char *newpath);
size_t rsb_gitcopy_count(const struct rsb_gitcopy *trust);
/* Goes up with each change. */
uint64_t rsb_gitcopy_version(const struct rsb_gitcopy *trust);

/* As bytes, appended; and back: -EBADMSG. */
rsb_nodiscard int rsb_gitcopy_write(const struct rsb_gitcopy *trust, struct rsb_buf *out);
rsb_nodiscard int rsb_gitcopy_read(struct rsb_gitcopy *trust, struct rsb_bytes data);
/* From a file; no file is an empty one. Errors of open(2), read(2), and those of reading. */
rsb_nodiscard int rsb_gitcopy_load(struct rsb_gitcopy *trust, const char *file);

#endif
