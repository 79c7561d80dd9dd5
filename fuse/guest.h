/* SPDX-License-Identifier: MIT */
#ifndef RSB_GUEST_H
#define RSB_GUEST_H

/*
 * One connection on the control socket: its messages, answered or handed to fuse/relay.h, and
 * its streams. Main thread.
 */

#include "fuse/control.h"
#include "proto/chan.h"
#include "proto/codec.h"

/* Bytes queued for a slow client beyond which its streams wait. */
#define RSB_GUEST_QUEUE_MAX ((size_t)8 << 20)

/* Takes fd, also on failure. */
rsb_nodiscard int rsb_guest_new(
	struct rsb_control *control, uint64_t serial, int fd, struct rsb_guest **ret_client);
/* Its commands are ended. */
void rsb_guest_free(struct rsb_guest *client);

uint64_t rsb_guest_serial(const struct rsb_guest *client);
struct rsb_control *rsb_guest_control(const struct rsb_guest *client);
struct rsb_chans *rsb_guest_chans(struct rsb_guest *client);
/* Its commands: the relay's list. */
struct rsb_list *rsb_guest_procs(struct rsb_guest *client);
/* Answers a call. rep NULL for rsb_empty or an error. A client that does not read is dropped. */
void rsb_guest_reply(
	struct rsb_guest *client, uint32_t op, uint64_t call, int error, const void *rep);
/* The same with a reply that is encoded already. */
void rsb_guest_send(struct rsb_guest *client, struct rsb_bytes msg);
/* Sends what its streams have. */
void rsb_guest_pump(struct rsb_guest *client);
/* It broke a rule or cannot be served: it is freed by the loop, later. */
void rsb_guest_kick(struct rsb_guest *client);

#endif
