/* SPDX-License-Identifier: MIT */
#ifndef RSB_TARSCAN_H
#define RSB_TARSCAN_H

/*
 * Reads one archive as tar.h does and makes nothing of it: what is in it. One thread; blocks.
 */

#include <sys/stat.h>

#include "util/buf.h"
#include "util/tar.h"

struct rsb_tarscan_entry {
	const char *path; /* as in the archive */
	const char
		*hardlink;  /* the first name of the same file; NULL: it has contents of its own */
	const char *target; /* of a symbolic link; NULL: it is none */
	struct stat st;     /* type, mode, size and mtime */
};

struct rsb_tarscan {
	struct rsb_tar_limits limits; /* over them is -EFBIG */
	/* In the archive's order; other results than 0 end it and are returned. */
	int (*entry)(void *arg, const struct rsb_tarscan_entry *entry);
	void *arg;
	/* The contents of the file of this name are appended to text; NULL: of none. */
	const char *wanted;
	struct rsb_buf *text;
};

/* From fd to its end. -EBADMSG: no such archive, or cut off. */
rsb_nodiscard int rsb_tarscan(int fd, const struct rsb_tarscan *scan, struct rsb_diag *diag);

#endif
