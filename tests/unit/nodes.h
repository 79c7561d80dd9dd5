/* SPDX-License-Identifier: MIT */
#ifndef RSB_TEST_NODES_H
#define RSB_TEST_NODES_H

/* A table of nodes, and what was given back to the sidecar last. */

#include "fuse/handle.h"
#include "fuse/ledger.h"
#include "fuse/seen.h"
#include "tests/unit/unit.h"

struct world {
	struct rsb_shared *shared;
	struct rsb_inodes *inodes;
	uint64_t forgot_id;
	uint64_t forgot_n;
};

void world_new(struct world *w);
void world_free(struct world *w);
/* For rsb_inodes_new(). */
void on_forget(void *arg, uint64_t id, uint64_t n);
struct rsb_attr file(uint64_t ino);
/* The sidecar gave a file, or a directory; with a reference. */
struct rsb_inode *given(struct world *w, uint64_t id, uint64_t ino);
struct rsb_inode *given_dir(struct world *w, uint64_t id);

#endif
