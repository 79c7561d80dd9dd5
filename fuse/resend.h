/* SPDX-License-Identifier: MIT */
#ifndef RSB_RESEND_H
#define RSB_RESEND_H

/*
 * The calls that the process before had made and not had an answer of: made again, in their order
 * and under their numbers, so that the sidecar executes those that it never heard of, and answers
 * the others once more. Writes go on as before; what a request of the kernel waits for is taken
 * over when that request is handled again; of the rest only what the reply gives is given back.
 */

#include "fuse/fs.h"

/*
 * After nodes and handles, before requests; the link does not connect yet. lost: the session of
 * before is gone; rsb_send_end_lost() after the requests.
 */
rsb_nodiscard int rsb_resend_calls(struct rsb_fs *fs, bool lost);

#endif
