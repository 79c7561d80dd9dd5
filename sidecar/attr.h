/* SPDX-License-Identifier: MIT */
#ifndef RSB_SIDECAR_ATTR_H
#define RSB_SIDECAR_ATTR_H

/* Attributes as the protocol tells them, from statx(2). Any thread. */

#include <sys/stat.h>

#include "proto/op.h"

void rsb_attr_of(const struct statx *st, struct rsb_attr *ret_attr);
/* Of what the descriptor refers to, O_PATH or not. */
rsb_nodiscard int rsb_attr_read(int fd, struct rsb_attr *ret_attr);

#endif
