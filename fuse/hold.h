/* SPDX-License-Identifier: MIT */
#ifndef RSB_HOLD_H
#define RSB_HOLD_H

/*
 * How long a request of the kernel may be held while the link is not live. For as long as one
 * about the names of a directory is not answered the kernel holds that directory's lock, and
 * whoever waits for the lock cannot be killed; so these are given up after RSB_HOLD_MAX_S: EIO,
 * withdrawn if it was not sent, its outcome noted as unknown if it was. All others wait until the
 * keeper fails them.
 *
 * Under the lock of fuse/fs.h, but for rsb_hold_tick().
 */

#include "fuse/fop.h"

#define RSB_HOLD_MAX_S 10u

struct rsb_hold;

rsb_nodiscard int rsb_hold_new(struct rsb_hold **ret_hold);
void rsb_hold_free(struct rsb_hold *hold);
RSB_DEFINE_CLEANUP(struct rsb_hold *, rsb_hold_free)

/* fop is about the names of a directory. */
void rsb_hold_limit(struct rsb_fop *fop);
/* fop is answered from memory if the link is not live. */
void rsb_hold_never(struct rsb_fop *fop);
/* The link's state changed. */
void rsb_hold_link_state(struct rsb_fs *fs, enum rsb_link_state state);
/* The link is live, and was for long enough to answer what waited for it. */
bool rsb_hold_is_calm(struct rsb_fs *fs);
/*
 * Twice a second or oftener, takes the lock by itself: ends what may not wait until the next one,
 * which comes in next_ns, and sends what may go on.
 */
void rsb_hold_tick(struct rsb_fs *fs, uint64_t next_ns);

/*
 * Nobody knows whether the mutation fop was done: here nothing of it counts any more. This and the
 * next two are named as losses (fuse/losses.h).
 */
void rsb_hold_unknown(struct rsb_fop *fop);
/* The same of data that was written to inode. */
void rsb_hold_unknown_data(struct rsb_fs *fs, const struct rsb_inode *inode);
/* inode's open file cannot be used any more. why: what comes after its path. */
void rsb_hold_note_lost(struct rsb_fs *fs, const struct rsb_inode *inode, const char *why);
#define RSB_HOLD_UNSENT "is open, and what was written to it last is lost with its sidecar's memory"

#endif
