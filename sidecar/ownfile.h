/* SPDX-License-Identifier: MIT */
#ifndef RSB_OWNFILE_H
#define RSB_OWNFILE_H

#include <stddef.h>

#include "util/macro.h"

/*
 * A file that is this process's alone until it ends or closes any descriptor of it, made if need
 * be; one of another size begins with zeros. The descriptor is the caller's. -EBUSY: another
 * process has it; -EPERM: it is not a regular file of our user that nobody else may open, with this
 * one name.
 */
rsb_nodiscard int rsb_ownfile_open(const char *path, size_t size);
/* All zeros again, without a block. */
rsb_nodiscard int rsb_ownfile_clear(int fd, size_t size);
/* These bytes have their blocks, so that no store into them ever finds a full file system. */
rsb_nodiscard int rsb_ownfile_allocate(int fd, size_t offset, size_t size);

#endif
