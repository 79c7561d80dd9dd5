/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_FIXED_H
#define RSB_FUSE_FIXED_H

/* A sidecar at a fixed address (option url=), without a keeper. */

#include "fuse/options.h"
#include "link/link.h"
#include "util/secret.h"

/* The key as 2 * n hex digits in a file that nobody else can read. */
rsb_nodiscard int rsb_fixed_key(
	const struct rsb_options *options, struct rsb_secret *ret_key, struct rsb_diag *diag);
/* Begins to connect. As rsb_link_connect(). */
rsb_nodiscard int rsb_fixed_connect(const struct rsb_options *options, struct rsb_link *link);
/* Nobody tells it to try again: until the first welcome one failure is enough. -ETIMEDOUT. */
rsb_nodiscard int rsb_fixed_wait(const struct rsb_options *options, struct rsb_link *link,
	uint64_t wait_ns, struct rsb_diag *diag);

#endif
