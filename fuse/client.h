/* SPDX-License-Identifier: MIT */
#ifndef RSB_FUSE_CLIENT_H
#define RSB_FUSE_CLIENT_H

/*
 * One connection on the control socket: its messages, answered or handed to fuse/relay.h, and
 * its streams. Main thread.
 */

#include "fuse/control.h"
#include "proto/chan.h"
#include "proto/codec.h"

/* Bytes queued for a slow client beyond which its streams wait. */
#define RSB_CLIENT_QUEUE_MAX ((size_t)8 << 20)

/* Takes fd, also on failure. */
rsb_nodiscard int rsb_client_new(
	struct rsb_control *control, uint64_t serial, int fd, struct rsb_client **ret_client);
/* Its commands are ended. */
void rsb_client_free(struct rsb_client *client);

uint64_t rsb_client_serial(const struct rsb_client *client);
struct rsb_control *rsb_client_control(const struct rsb_client *client);
struct rsb_chans *rsb_client_chans(struct rsb_client *client);
/* Its commands: the relay's list. */
struct rsb_list *rsb_client_procs(struct rsb_client *client);
/* Answers a call. rep NULL for rsb_empty or an error. A client that does not read is dropped. */
void rsb_client_reply(
	struct rsb_client *client, uint32_t op, uint64_t call, int error, const void *rep);
/* The same with a reply that is encoded already. */
void rsb_client_send(struct rsb_client *client, struct rsb_bytes msg);
/* Sends what its streams have. */
void rsb_client_pump(struct rsb_client *client);
/* It broke a rule or cannot be served: it is freed by the loop, later. */
void rsb_client_kick(struct rsb_client *client);

#endif
