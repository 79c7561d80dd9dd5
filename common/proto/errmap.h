/* SPDX-License-Identifier: MIT */
#ifndef RSB_ERRMAP_H
#define RSB_ERRMAP_H

/*
 * errno on the wire: the numbers of Linux x86-64 (asm-generic/errno.h), whatever the machine. A
 * number that we do not know, 0 included, and anything outside 1..511 arrives as EIO: the kernel
 * drops a FUSE reply of 512 and beyond before it has found the request, and the caller would hang
 * for ever. ENOSYS is turned into EOPNOTSUPP on arrival: the kernel remembers ENOSYS of some
 * requests and never asks again.
 */

#include "util/macro.h"

/* r: negative errno of this machine. Returns the positive wire number. */
uint32_t rsb_errmap_to_wire(int r);
/* Returns a negative errno of this machine. */
int rsb_errmap_from_wire(uint64_t wire);

#endif
