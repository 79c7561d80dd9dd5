/* SPDX-License-Identifier: MIT */
#ifndef RSB_MANIFEST_H
#define RSB_MANIFEST_H

/*
 * The tree as it was on both sides after the last sync, in the file "manifest" of the sandbox's
 * state directory. It is replaced by rename and ends with a digest: what cannot be read whole
 * counts as none, after which a sync compares contents.
 *
 * A file counts as unchanged while its stamp is the one noted for that side: change time and inode
 * number, which no program sets, besides modification time, size and mode. Else its SHA-256
 * decides.
 */

#include "keeper/tree.h"

#define RSB_MANIFEST_FILE "manifest"
#define RSB_MANIFEST_MAX ((size_t)1 << 30) /* bytes of the file */

/* dir: path of the state directory. -ENOENT: none; -EBADMSG: damaged. tree is filled, or empty. */
rsb_nodiscard int rsb_manifest_load(const char *dir, struct rsb_tree *tree);
/*
 * The other side is again as it was at wall_ns. What was noted since then does not hold: the next
 * sync compares contents, and takes nothing that one side lacks for deleted. That there was one
 * stays known.
 */
rsb_nodiscard int rsb_manifest_rewind(const char *dir, uint64_t wall_ns);
/* Also a damaged one: there was a sync. */
bool rsb_manifest_exists(const char *dir);
/* whole: the one that is there was loaded, and is left when it says the same. */
rsb_nodiscard int rsb_manifest_save(const char *dir, const struct rsb_tree *tree, bool whole);

/* As bytes; apart for tests. */
rsb_nodiscard int rsb_manifest_read(struct rsb_bytes data, struct rsb_tree *tree);
rsb_nodiscard int rsb_manifest_write(const struct rsb_tree *tree, struct rsb_buf *out);

#endif
