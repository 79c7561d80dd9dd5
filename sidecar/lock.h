/* SPDX-License-Identifier: MIT */
#ifndef RSB_LOCK_H
#define RSB_LOCK_H

/*
 * Locks of the host's processes, as real locks of the kernel here, so that they conflict with those
 * of the sandbox's processes and of other sessions.
 *
 *  - POSIX locks of one owner on one inode are OFD locks of a descriptor that belongs to that pair
 *    alone: closing or unlocking by one owner touches nobody else's. A wait that closes a circle of
 *    the host's owners is refused with EDEADLK, as the kernel does; in one that goes over processes
 *    of the sandbox, which the kernel cannot see, ours is the wait that ends, a second later at the
 *    latest.
 *  - flock(2) locks are those of the open file itself, and end with it.
 *
 * A request that waits occupies no worker. One thread tries all that wait again, in the order in
 * which they came: at once after one of our locks was given back, else after 1 ms, then twice as
 * long and so on up to 50 ms, for a process of the sandbox does not tell us that it has unlocked. A
 * blocking call would need a thread for each, and a signal that it can miss to be cancelled.
 *
 * Any thread. The calls under the lock inside are those that do not wait; on network file systems
 * even they take a round trip.
 */

#include "sidecar/fh.h"
#include "sidecar/request.h"
#include "sidecar/root.h"

struct rsb_lock {
	uint64_t owner;
	enum rsb_lock_kind kind;
	short type; /* F_RDLCK, F_WRLCK, F_UNLCK */
	int64_t start;
	int64_t length; /* 0: to the end of the file */
	uint64_t pid;   /* as the host calls the owner */
};

rsb_nodiscard int rsb_locks_new(struct rsb_locks **ret_locks);
/* What still waits is answered EINTR. NULL is fine. */
void rsb_locks_free(struct rsb_locks *locks);
RSB_DEFINE_CLEANUP(struct rsb_locks *, rsb_locks_free)

/* Locks or unlocks. -EAGAIN: somebody else has it; -ENOLCK: too many. */
rsb_nodiscard int rsb_locks_set(struct rsb_locks *locks, const struct rsb_root *root,
	const struct rsb_fh *file, const struct rsb_lock *lock);
/*
 * 0: rq waits, and will be answered; use->file is taken. 1: got it at once. Negative: errors as of
 * set, but not -EAGAIN; -EINTR: rq was cancelled already; -EDEADLK.
 */
rsb_nodiscard int rsb_locks_wait(struct rsb_locks *locks, const struct rsb_root *root,
	struct rsb_fh_use *use, const struct rsb_lock *lock, struct rsb_request *rq);
/* What stands in the way of a POSIX lock; type F_UNLCK: nothing. */
rsb_nodiscard int rsb_locks_test(struct rsb_locks *locks, const struct rsb_fh *file,
	const struct rsb_lock *lock, struct rsb_getlk_rep *ret_rep);

/* All POSIX locks of the owner on this inode. */
void rsb_locks_drop(struct rsb_locks *locks, const struct rsb_fh *file, uint64_t owner);
/* The open file ends: locks taken through it too, and what waits through it is answered EBADF. */
void rsb_locks_release(struct rsb_locks *locks, const struct rsb_fh *file);

/*
 * All of them, of a session whose host is away: others wait for them. What waits is answered
 * EAGAIN. Whether there was a lock.
 */
bool rsb_locks_give_up(struct rsb_locks *locks, struct rsb_fhs *fhs);

struct rsb_locks_stats {
	size_t n_holder; /* descriptors for POSIX locks */
	size_t n_waiting;
};
void rsb_locks_stats(struct rsb_locks *locks, struct rsb_locks_stats *ret_stats);

#endif
