/* SPDX-License-Identifier: MIT */
#ifndef RSB_PACK_H
#define RSB_PACK_H

/*
 * Writes chosen names below a directory as a pax archive with binary names, compressed by zstd:
 * what tar.h reads. Nothing is followed as a link. Holes, user attributes and hard links among
 * what is chosen survive; set-user-ID and owners do not. One thread; blocks.
 */

#include "util/buf.h"
#include "util/cleanup.h"

/*
 * The archive's last file when something is missing from it: the paths, a NUL after each, of files
 * that changed each time they were read, or could not be read.
 */
#define RSB_PACK_LEFT_OUT ".rsb/left-out"
#define RSB_PACK_LEFT_OUT_MAX ((size_t)4 << 20)

struct rsb_pack;

/* write takes all of data, or returns a negative errno that ends the archive. root_fd: borrowed. */
rsb_nodiscard int rsb_pack_new(int root_fd, int (*write)(void *arg, struct rsb_bytes data),
	void *arg, struct rsb_pack **ret_pack);
void rsb_pack_free(struct rsb_pack *pack); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_pack *, rsb_pack_free)

/*
 * Not a directory's contents. What is not there is passed over, as are FIFOs, sockets and devices.
 * A file that changes while it is read follows again, up to three times.
 */
rsb_nodiscard int rsb_pack_add(struct rsb_pack *pack, const char *path);
rsb_nodiscard int rsb_pack_finish(struct rsb_pack *pack);

#endif
