/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_NAMESTORE_H
#define RSB_FUSE_NAMESTORE_H

/*
 * The names of nodes, and of fuse/alias.h, in the shared mapping, where the next daemon finds
 * them: a sidecar whose process is another one is told the nodes by them. In runs of small pieces,
 * as many as a name takes; which are free is found out anew by each process.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/shared.h"

struct rsb_namestore;

/* Borrows shared, whose nodes are as the process before left them. */
rsb_nodiscard int rsb_namestore_new(struct rsb_shared *shared, struct rsb_namestore **ret_store);
void rsb_namestore_free(struct rsb_namestore *store);
RSB_DEFINE_CLEANUP(struct rsb_namestore *, rsb_namestore_free)

/* *ret_word is for struct rsb_shared_node or rsb_shared_alias. -ENOSPC, -ENAMETOOLONG. */
rsb_nodiscard int rsb_namestore_put(
	struct rsb_namestore *store, struct rsb_bytes name, uint64_t *ret_word);
/* With a NUL, until it is dropped. NULL: word is 0, or makes no sense. */
const char *rsb_namestore_get(const struct rsb_namestore *store, uint64_t word);
void rsb_namestore_drop(struct rsb_namestore *store, uint64_t word);

#endif
