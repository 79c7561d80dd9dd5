/* SPDX-License-Identifier: MIT */
#ifndef RSB_STAGE_H
#define RSB_STAGE_H

/*
 * Where an archive from a sandbox is unpacked before anything of it is put in its place: a
 * directory .rsb/sync-NAME in the tree that it is for, so that renames lead from one to the other.
 * Whoever has one holds an flock(2) on it: what is there without is left by one that was killed.
 */

#include "keeper/haul.h"
#include "keeper/tree.h"
#include "util/tar.h"

struct rsb_stage;

/* Removes what nobody uses any more, of whatever sandbox, as far as we may. */
void rsb_stage_sweep(int root_fd);
/* Removes path, if it is there, with all that is in it. */
rsb_nodiscard int rsb_stage_remove(int root_fd, const char *path);
/* root_fd: borrowed; name: of the sandbox. Errors of mkdir(2), with a sentence. */
rsb_nodiscard int rsb_stage_open(
	int root_fd, const char *name, struct rsb_stage **ret_stage, struct rsb_diag *diag);
/* With everything in it. NULL is fine. */
void rsb_stage_close(struct rsb_stage *stage);
RSB_DEFINE_CLEANUP(struct rsb_stage *, rsb_stage_close)
int rsb_stage_fd(const struct rsb_stage *stage);

/* Unpacks what haul sends, to its end; moved (may be NULL) hears of bytes. */
struct rsb_stage_fill {
	struct rsb_haul *haul;
	struct rsb_tar_limits limits;
	void (*moved)(void *arg, uint64_t bytes);
	void *arg;
};
rsb_nodiscard int rsb_stage_fill(
	struct rsb_stage *stage, const struct rsb_stage_fill *fill, struct rsb_diag *diag);
/* A file that is staged holds data instead; under its other names it does not. */
rsb_nodiscard int rsb_stage_replace(
	const struct rsb_stage *stage, const char *path, struct rsb_bytes data);
/* All of it is on the disk. */
rsb_nodiscard int rsb_stage_flush(const struct rsb_stage *stage);
/* What is staged, files hashed. */
rsb_nodiscard int rsb_stage_tree(const struct rsb_stage *stage, struct rsb_tree *tree);

#endif
