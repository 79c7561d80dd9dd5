/* SPDX-License-Identifier: MIT */
#ifndef RSB_EVENT_H
#define RSB_EVENT_H

/* Process events as envelopes of a stream, in the JSON of process.Process. Pure. */

#include <sys/types.h>

#include "util/buf.h"

enum rsb_event_stream { RSB_EVENT_STDOUT, RSB_EVENT_STDERR };

rsb_nodiscard int rsb_event_start(struct rsb_buf *out, pid_t pid);
rsb_nodiscard int rsb_event_data(
	struct rsb_buf *out, enum rsb_event_stream stream, struct rsb_bytes data);
/* status as of waitpid(2). Like proto3 JSON, members that are zero are left out. */
rsb_nodiscard int rsb_event_end(struct rsb_buf *out, int status);

#endif
