/* SPDX-License-Identifier: MIT */
#ifndef RSB_TAR_H
#define RSB_TAR_H

/*
 * Reads one pax archive, compressed by zstd, and makes its entries below a directory. The only home
 * of libarchive in the sidecar, of which it uses the reader alone; what touches files is extract.h.
 * One thread; blocks.
 */

#include "sidecar/extract.h"

struct rsb_tar_result {
	uint64_t n_file; /* entries made, of all kinds */
	uint64_t size;   /* bytes of file contents */
	struct rsb_diag
		problem; /* about the first entry that was not made as it stands in the archive */
};

/*
 * From fd to its end. 0 also when single entries could not be made. -EBADMSG: no such archive, or
 * cut off; else the errno that makes going on pointless: ENOSPC, EDQUOT, EROFS, EIO, ENOMEM.
 * *result is written to in each case.
 */
rsb_nodiscard int rsb_tar_extract(
	int fd, int root_fd, const struct rsb_extract_owner *owner, struct rsb_tar_result *result);

#endif
