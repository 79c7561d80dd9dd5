/* SPDX-License-Identifier: MIT */
#ifndef RSB_HOLDER_H
#define RSB_HOLDER_H

/*
 * The POSIX locks of one owner on one inode: the locks of an open file of its own. Kept in lists of
 * struct rsb_holder.link; under the lock of whoever keeps them.
 */

#include <fcntl.h>

#include "sidecar/fh.h"
#include "sidecar/lock.h"
#include "sidecar/lockgraph.h"
#include "sidecar/root.h"
#include "util/list.h"

struct rsb_holder {
	struct rsb_list link;
	uint64_t dev;
	uint64_t ino;
	uint64_t owner;
	uint64_t pid; /* as the host calls the owner */
	uint64_t fh;  /* through which it came; they end together */
	int fd;
};

struct rsb_holder *rsb_holder_find(
	const struct rsb_list *holders, const struct rsb_fh *file, uint64_t owner);
/* In no list yet. -ENOMEM, -ENOLCK, or why the file cannot be opened once more. */
rsb_nodiscard int rsb_holder_new(const struct rsb_root *root, const struct rsb_fh *file,
	uint64_t owner, struct rsb_holder **ret_holder);
/* All in a list, which is empty afterwards. */
void rsb_holders_free(struct rsb_list *holders);

/* What it holds. */
void rsb_holder_tell(const struct rsb_holder *holder, struct rsb_lockgraph *graph);
/* Who holds what stands in the way of the owner's lock; NULL: none of these. */
const struct rsb_holder *rsb_holder_of(const struct rsb_list *holders, const struct rsb_fh *file,
	uint64_t owner, const struct rsb_lockgraph_lock *lock);

/* As fcntl(2) takes it; and as sidecar/lockgraph.h does. */
struct flock rsb_holder_flock(const struct rsb_lock *lock);
struct rsb_lockgraph_lock rsb_holder_want(const struct rsb_fh *file, const struct rsb_lock *lock);
/* What stands in the way of a POSIX lock, as rsb_locks_test(). */
rsb_nodiscard int rsb_holder_test(const struct rsb_list *holders, const struct rsb_fh *file,
	const struct rsb_lock *lock, struct rsb_getlk_rep *ret_rep);

#endif
