/* SPDX-License-Identifier: MIT */
#ifndef RSB_RESOLVE_H
#define RSB_RESOLVE_H

/* From a node of the host to a descriptor that is certain to be of it. Any thread. */

#include "sidecar/node.h"

/*
 * An O_PATH descriptor, which the caller closes. -ESTALE: no such node, not what the host expects,
 * or it is neither where it was seen last nor can it be reached otherwise. Else an errno of
 * openat2(2).
 */
rsb_nodiscard int rsb_resolve(struct rsb_nodes *nodes, const struct rsb_node *node);

#endif
