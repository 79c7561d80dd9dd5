/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_REVIVE_H
#define RSB_FUSE_REVIVE_H

/*
 * The sidecar's process is another one and goes on with the session (PROTOCOL.md 3.9). It is told,
 * in this order and in bounded pieces, without anybody waiting for it:
 *
 *  1. the nodes that are known here, directories before what is in them; those that are not
 *     found under their name once more under another one;
 *  2. the mutations that were begun over there, by fuse/limbo.h, for the answers of then;
 *  3. the files that are open; what cannot be opened again is ESTALE, and one that had a lock
 *     is EIO: who has it now nobody knows;
 *  4. all other calls that were not answered.
 *
 * Then the link goes on. Until then what the kernel asks for is parked in fuse/send.h, and given up
 * by fuse/hold.h and the keeper as over a broken connection. When the daemon is killed meanwhile,
 * the next one begins with it once more.
 *
 * Under the lock of fuse/fs.h.
 */

#include <errno.h>

#include "fuse/fs.h"

struct rsb_revive;

rsb_nodiscard int rsb_revive_new(struct rsb_fs *fs, struct rsb_revive **ret_revive);
void rsb_revive_free(struct rsb_revive *revive);

/* As ops->anew of link/link.h; also when one is under way. */
void rsb_revive_begin(struct rsb_revive *revive, uint64_t fifo);
/* The session is gone after all. */
void rsb_revive_abort(struct rsb_revive *revive);
/* Goes on where there was no room. */
void rsb_revive_step(struct rsb_revive *revive);
/* This process of the sidecar has ended as well, or the link: it begins once more, or not. */
static inline bool
rsb_revive_is_over(int r)
{
	return r == -EOWNERDEAD || r == -ENOTCONN || r == -ECANCELED;
}
/* Locks are gone: their files are EIO until they are closed. */
void rsb_revive_lose_locks(struct rsb_fs *fs);
/* Takes the sentence about one that has ended; false: there is none. Takes the lock by itself. */
bool rsb_revive_say(struct rsb_fs *fs, char *text, size_t size);

#endif
