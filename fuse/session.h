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
/* Starts the thread; ended() is called on it when the kernel unmounted (r 0) or reading failed. */
rsb_nodiscard int rsb_fuse_session_start(
	struct rsb_fuse_session *session, void (*ended)(void *arg, int r), void *arg);
/* The kernel has had its INIT answered. */
bool rsb_fuse_session_ready(struct rsb_fuse_session *session);
/* Ends the thread, closes the descriptor. NULL is fine. */
void rsb_fuse_session_free(struct rsb_fuse_session *session);
RSB_DEFINE_CLEANUP(struct rsb_fuse_session *, rsb_fuse_session_free)

#endif
