/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_SESSION_H
#define RSB_FUSE_SESSION_H

/*
 * The low-level FUSE session on a descriptor that the supervisor opened, and the fuse thread.
 * Reading and writing go through hooks of ours: they record what is under way in the shared
 * mapping, add to the INIT reply what libfuse 3.14 leaves out although it offers it (parallel
 * directory operations, killpriv v2; without the one, look-ups in a directory stand in a queue,
 * without the other every write(2) asks for an xattr first), and pick up the flags that it does
 * not pass on.
 */

#include "fuse/fs.h"

struct rsb_fuse_session;

/* fd is taken, also on failure. */
rsb_nodiscard int rsb_fuse_session_new(
	struct rsb_fs *fs, int fd, struct rsb_fuse_session **ret_session);
/*
 * After a crash, before the thread is started, under the lock of fs: the kernel's first request
 * once more, whose answer it has had; then a request that was not answered, in the memory that
 * libfuse would have read it into. hand: what is remembered of it.
 */
void rsb_fuse_session_resume(struct rsb_fuse_session *session);
void rsb_fuse_session_again(struct rsb_fuse_session *session, struct rsb_shared_flight *hand,
	uint8_t *data, size_t size);
/* What shared->request holds is answered, or in flight. Under the lock of fs. */
void rsb_fuse_session_let_go(struct rsb_fuse_session *session);
/* The device, borrowed. */
int rsb_fuse_session_fd(const struct rsb_fuse_session *session);
/* A request that cannot be handled again; error: positive. */
void rsb_fuse_session_refuse(struct rsb_fuse_session *session, uint64_t unique, int error);
/* Starts the thread; ended() is called on it when the kernel unmounted (r 0) or reading failed. */
rsb_nodiscard int rsb_fuse_session_start(
	struct rsb_fuse_session *session, void (*ended)(void *arg, int r), void *arg);
/* The kernel has had its INIT answered. */
bool rsb_fuse_session_ready(struct rsb_fuse_session *session);
/* Ends the thread, closes the descriptor. NULL is fine. */
void rsb_fuse_session_free(struct rsb_fuse_session *session);
RSB_DEFINE_CLEANUP(struct rsb_fuse_session *, rsb_fuse_session_free)

#endif
