/* SPDX-License-Identifier: MIT */
#ifndef RSB_TREE_H
#define RSB_TREE_H

/*
 * Writes the fresh part of a sandbox's root directory, with the owners that it shall have inside.
 * Paths are relative to that directory and made of fixed text: nobody else is in there yet.
 */

#include "util/diag.h"

#include "sidecar/envd/userns.h"

#define RSB_TREE_FILES_MAX 16384U
#define RSB_TREE_BYTES_MAX ((uint64_t)64 << 20)
#define RSB_TREE_DEPTH_MAX 8U

struct rsb_tree {
	int fd; /* borrowed */
	const struct rsb_userns *ns;
	uint32_t n_file; /* copied so far */
	uint64_t n_byte;
};

/* id: owner and group as the sandbox sees them. */
rsb_nodiscard int rsb_tree_dir(
	struct rsb_tree *tree, const char *path, unsigned int mode, uint32_t id);
rsb_nodiscard int rsb_tree_text(
	struct rsb_tree *tree, const char *path, unsigned int mode, const char *text);
rsb_nodiscard int rsb_tree_link(struct rsb_tree *tree, const char *path, const char *target);

/*
 * Copies a file, link or directory of the host. Only what every user of the host may read is taken,
 * links stay links, and what is no file, link or directory is left out. Absence is no error.
 * -EFBIG over the limits above.
 */
rsb_nodiscard int rsb_tree_copy(
	struct rsb_tree *tree, const char *host, const char *path, uint32_t id);

#endif
