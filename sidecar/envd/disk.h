/* SPDX-License-Identifier: MIT */
#ifndef RSB_DISK_H
#define RSB_DISK_H

/*
 * Storage of the writable layers. As root, a size asks for a sparse ext4 image on a loop device:
 * the image has no name and the device clears itself, so both end with the mount namespace,
 * however the sandbox ends. Else a tmpfs.
 */

#include <stdbool.h>

#include "util/diag.h"

struct rsb_disk {
	uint64_t size;
	int image; /* -1: a tmpfs */
};

/* size 0: a tmpfs with the kernel's limit. The image is made in dir. */
rsb_nodiscard int rsb_disk_init(
	struct rsb_disk *disk, const char *dir, uint64_t size, bool as_root, struct rsb_diag *diag);
/* A mount keeps what it needs. */
void rsb_disk_done(struct rsb_disk *disk);
/* In the caller's mount namespace. */
rsb_nodiscard int rsb_disk_mount(
	const struct rsb_disk *disk, const char *target, struct rsb_diag *diag);

#endif
