/* SPDX-License-Identifier: MIT */
#ifndef RSB_ADOPT_H
#define RSB_ADOPT_H

/* A node that the host has from another process of the sidecar. Any thread. */

#include "sidecar/place.h"

/*
 * one->n_given 0: it is given once more. place: of the node before, since most often it is the same
 * directory; RSB_PLACE_EMPTY at first, the caller ends it. -ESTALE: it is not there under its name,
 * and is awaited. -EINVAL: the host cannot have it; else an errno of looking, or of
 * rsb_nodes_bind().
 */
rsb_nodiscard int rsb_adopt_node(
	struct rsb_nodes *nodes, struct rsb_place *place, const struct rsb_adopt_one *one);

#endif
