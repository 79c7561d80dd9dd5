/* SPDX-License-Identifier: MIT */
#ifndef RSB_TAR_H
#define RSB_TAR_H

/*
 * Reads one pax archive, compressed by zstd, and makes its entries below a directory. Of libarchive
 * the reader alone is used; what touches files is extract.h.
 * One thread; blocks.
 */

#include "util/extract.h"

struct rsb_tar_result {
	uint64_t n_file; /* entries made, of all kinds */
	uint64_t size;   /* bytes of file contents */
	int error;       /* of the first entry that could not be made, or of the archive; 0: none */
	/* About that, or else the first thing of less weight that is not as in the archive. */
	struct rsb_diag problem;
};

/* Against who says more than was asked for. */
struct rsb_tar_limits {
	uint64_t files;
	uint64_t size; /* bytes of contents, with those of holes */
};

/*
 * limits: NULL: none; over them is -EFBIG, which ends it.
 * From fd to its end, or until going on is pointless: ENOSPC, EDQUOT, EROFS, EIO, ENOMEM, and
 * EBADMSG: no such archive, or cut off.
 */
void rsb_tar_extract(int fd, int root_fd, const struct rsb_extract_owner *owner,
	const struct rsb_tar_limits *limits, struct rsb_tar_result *ret_result);

#endif
