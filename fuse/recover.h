/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_RECOVER_H
#define RSB_FUSE_RECOVER_H

/*
 * A daemon that goes on where another one was killed. What counts is in the shared mapping; this
 * brings it back to life, in this order:
 *
 *  1. nodes, open files, and what was written to them and not sent;
 *  2. the calls that were not answered, to be sent again under their numbers (fuse/resend.h);
 *  3. the kernel's requests that were not answered: each is handled once more, as it came. It gets
 *     the same ids, and where the first time it made a call, the reply of that call.
 *
 * Nothing is sent before all of it is done: the link connects afterwards. The kernel's caches are
 * dropped by whoever calls this; nothing is known of what was told to it.
 */

#include "fuse/session.h"

/* The link, made with shared->link, does not connect yet, and the session has no thread. */
rsb_nodiscard int rsb_recover(struct rsb_fs *fs, struct rsb_fuse_session *session);
/* Now and then: when the calls of before are answered, what nobody holds goes. */
void rsb_recover_tick(struct rsb_fs *fs);

#endif
