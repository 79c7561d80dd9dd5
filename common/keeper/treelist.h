/* SPDX-License-Identifier: MIT */
#ifndef RSB_TREELIST_H
#define RSB_TREELIST_H

/*
 * Reads the list that a sidecar makes of its workspace (tree_out). It may say what it likes: a name
 * that leads out, an order that is none, a name below what is no directory ends the reading.
 */

#include "keeper/tree.h"

struct rsb_treelist {
	struct rsb_tree *tree; /* filled */
	struct rsb_buf rest;   /* the beginning of a record */
	bool partial; /* what changed: of some names that they went, and not every directory */
};

void rsb_treelist_init(struct rsb_treelist *list, struct rsb_tree *tree);
void rsb_treelist_done(struct rsb_treelist *list);
/* Any part of the stream. -EBADMSG; errors of rsb_tree_add(). */
rsb_nodiscard int rsb_treelist_feed(struct rsb_treelist *list, struct rsb_bytes data);
/* What was fed as partial is a list that could have been fed as another. -EBADMSG, -ENOMEM. */
rsb_nodiscard int rsb_treelist_check_whole(const struct rsb_treelist *list);
/* The stream is over. -EBADMSG: within a record. */
rsb_nodiscard int rsb_treelist_end(const struct rsb_treelist *list);

#endif
