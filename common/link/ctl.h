/* SPDX-License-Identifier: MIT */
#ifndef RSB_CTL_H
#define RSB_CTL_H

/*
 * The daemon's control socket: SOCK_SEQPACKET, 0600, the peer's uid checked on both sides;
 * each packet is one frame of proto/frame.h (MESSAGE with number 0, STREAM, CREDIT, RESET;
 * never compressed). Messages are the same as on the link. This module is one end of one such
 * connection, either side, on the caller's loop.
 *
 * Rules: the client sends ctl_hello first; proc numbers and channels are the client's own,
 * the daemon maps them. Credit is end to end: the daemon passes on STREAM only within the
 * credit that the client gave, and gives the link's credit on as the client consumes. A
 * client that goes away ends its processes (unless detached) by the daemon's hand. A packet
 * queue of at most RSB_CTL_QUEUE_MAX bytes waits for a slow peer; over it the connection is
 * dropped.
 */

#include "proto/chan.h"
#include "proto/codec.h"
#include "util/loop.h"

#define RSB_CTL_QUEUE_MAX ((size_t)16 << 20)

struct rsb_ctl;

struct rsb_ctl_ops {
	/* A whole message. Borrowed until return. */
	void (*message)(void *arg, const struct rsb_call_head *head);
	/* A STREAM, CREDIT or RESET frame. */
	void (*frame)(void *arg, const struct rsb_frame *frame);
	/* The connection ended; the last call. r: 0 orderly. */
	void (*closed)(void *arg, int r);
};

/* Takes fd, also on failure. */
rsb_nodiscard int rsb_ctl_new(struct rsb_loop *loop, int fd, const struct rsb_ctl_ops *ops,
	void *arg, struct rsb_ctl **ret_ctl);
/* No callback comes afterwards. NULL is fine. */
void rsb_ctl_free(struct rsb_ctl *ctl);
/*
 * Queues an encoded request or reply (proto/codec.h), split over packets. -EAGAIN over
 * RSB_CTL_QUEUE_MAX.
 */
rsb_nodiscard int rsb_ctl_send(struct rsb_ctl *ctl, struct rsb_bytes msg);
rsb_nodiscard int rsb_ctl_send_frame(struct rsb_ctl *ctl, const struct rsb_frame *frame);
/* Bytes waiting for the socket. */
size_t rsb_ctl_queued(const struct rsb_ctl *ctl);

#endif
