/* SPDX-License-Identifier: MIT */
#ifndef RSB_PLACE_H
#define RSB_PLACE_H

/* A name in a directory: what the operations on names act upon. */

#include "sidecar/node.h"

struct rsb_place {
	int dir_fd;   /* O_PATH */
	uint64_t dir; /* id of the directory */
	char name[RSB_NAME_MAX + 1];
};

#define RSB_PLACE_EMPTY      \
	{                    \
		.dir_fd = -1 \
	}

/* -EINVAL: no name; else as rsb_resolve(). */
rsb_nodiscard int rsb_place_init(struct rsb_place *place, struct rsb_nodes *nodes,
	const struct rsb_node *dir, struct rsb_bytes name);
void rsb_place_done(struct rsb_place *place);

/* O_PATH of what has the name now. */
rsb_nodiscard int rsb_place_child(const struct rsb_place *place);
/* Attributes of the directory. */
rsb_nodiscard int rsb_place_attr(
	const struct rsb_place *place, struct rsb_nodes *nodes, struct rsb_attr *ret_attr);
/*
 * The reply about what has the name, whose O_PATH descriptor fd is: binds it to id, or finds the id
 * that it has. fd is taken (set to -1) if it is useful. rep->dir is left alone.
 */
rsb_nodiscard int rsb_place_enter(const struct rsb_place *place, struct rsb_nodes *nodes,
	uint64_t id, int *fd, struct rsb_entry_rep *rep);

#endif
