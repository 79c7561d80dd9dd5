/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_SENDING_H
#define RSB_FUSE_SENDING_H

/* One call on its way, and the table of all; private to fuse/send.c and fuse/limbo.c. */

#include "fuse/send.h"
#include "fuse/shared.h"
#include "proto/codec.h"

struct rsb_sending {
	struct rsb_send *send;
	struct rsb_list parked; /* in rsb_send.parked or rsb_send.limbo, or unlinked */
	uint64_t serial;
	uint64_t link_call;
	uint32_t op;
	struct rsb_shared_call *shared; /* NULL: it ends with this process */
	struct rsb_buf req;             /* encoded, while parked */
	bool cancelled;                 /* while parked */
	bool in_limbo;
	bool lost; /* its session was, before it could be made again */
	rsb_call_fn fn;
	void *arg;
};

/* All {rsb_fs.lock}. */
struct rsb_send {
	struct rsb_fs *fs;
	struct rsb_map calls; /* by serial */
	struct rsb_map found; /* those of the process before that a request made, by its number */
	struct rsb_list parked;
	size_t n_parked;
	struct rsb_list limbo; /* of fuse/limbo.h */
	uint64_t serial;
	struct rsb_buf forgets;
	size_t n_forget;
};

/* How a call is handed to the link. */
enum rsb_sending_how {
	RSB_SENDING_AGAIN = 1 << 0, /* it was before, maybe by another process */
	RSB_SENDING_FIRST = 1 << 1, /* before a session that goes on anew is LIVE */
};

/* {rsb_fs.lock} as all here. -EAGAIN: there is no room, or it is not its turn. */
rsb_nodiscard int rsb_sending_hand_over(
	struct rsb_sending *call, const void *req, unsigned int how);
/* Out of every table; its callback runs. */
void rsb_sending_end(struct rsb_sending *call, int r, const void *rep);

/* A request or a reply, decoded. */
union rsb_sending_msg {
	char bytes[2048];
	uint64_t align;
};
/* The request of a call that was entered or parked; its views are into buf. */
rsb_nodiscard int rsb_sending_decode(
	struct rsb_sending *call, struct rsb_buf *buf, union rsb_sending_msg *ret_req);

#endif
