/* SPDX-License-Identifier: MIT */
#ifndef RSB_GITUNTRACKED_H
#define RSB_GITUNTRACKED_H

/*
 * The untracked cache of an index (gitformat-index(5), extension "UNTR"): names of directories that
 * git opens when it takes their parents to be unchanged, and writes down what it finds there. Pure.
 */

#include "util/buf.h"

/* id_size: bytes of an object's id. -EACCES: a name leads elsewhere; -EBADMSG: it is none. */
rsb_nodiscard int rsb_gituntracked_check(struct rsb_bytes data, size_t id_size);

#endif
