/* SPDX-License-Identifier: MIT */
#ifndef RSB_CONTROL_H
#define RSB_CONTROL_H

/*
 * The control socket: rsb-exec and rsb speak through the daemon's link. Rules and packets as in
 * link/ctl.h; both ends keep a struct rsb_chans for the streams, attached for as long as the
 * connection lives, so credit works from end to end.
 *
 * ctl_hello or ctl_upgrade comes first, or the connection is dropped. spawn, wait, signal, kill,
 * proc_free and tar_in are relayed with the daemon's own proc numbers and wrapped into the barriers
 * of fuse/barrier.h (fuse/relay.h); ctl_status, ctl_losses, ctl_trust, ctl_stop and ctl_upgrade are
 * answered here; anything else is EOPNOTSUPP. When a client goes away its commands are ended.
 *
 * Main thread, but for the three that take streams from the link's thread.
 */

#include "fuse/barrier.h"
#include "proto/limits.h"
#include "util/buf.h"

/* As many commands as there can be, and those who ask about them or end them. */
#define RSB_CONTROL_CLIENTS_MAX (RSB_PROCS_MAX + 64u)

struct rsb_guest;
struct rsb_control;
struct rsb_relay;

struct rsb_control_config {
	struct rsb_loop *loop;
	struct rsb_fs *fs;
	struct rsb_barrier *barrier;
	const char *sandbox;
	const char *mountpoint; /* empty: not mounted */
	int sock;               /* to the supervisor */
	uint64_t grace_ns;      /* from TERM to KILL for the commands of a client that went away */
	/* Appends the JSON of ctl_status. */
	int (*status)(void *arg, struct rsb_buf *out);
	/*
	 * ctl_stop: begins to end the daemon; rsb_control_stopped() answers. Negative errno: it
	 * does not.
	 */
	int (*stop)(void *arg, bool force);
	void *arg;
};

/* Takes listen_fd, also on failure. config's pointers are borrowed. */
rsb_nodiscard int rsb_control_new(
	const struct rsb_control_config *config, int listen_fd, struct rsb_control **ret_control);
/* Drops all clients. */
void rsb_control_free(struct rsb_control *control);
RSB_DEFINE_CLEANUP(struct rsb_control *, rsb_control_free)

const struct rsb_control_config *rsb_control_config(const struct rsb_control *control);
struct rsb_relay *rsb_control_relay(struct rsb_control *control);
size_t rsb_control_clients(const struct rsb_control *control);
/* NULL: it is gone. */
struct rsb_guest *rsb_control_client(const struct rsb_control *control, uint64_t serial);
/* Those who asked for the end are told how it went. */
void rsb_control_stopped(struct rsb_control *control, int r);
/* Now and then: clients whose socket was full go on. */
void rsb_control_tick(struct rsb_control *control);

/* For fuse/guest.c: a client asks for the end; it is gone. */
void rsb_control_ask_stop(struct rsb_control *control, struct rsb_guest *client, uint64_t call,
	const struct rsb_ctl_stop_req *req);
void rsb_control_drop(struct rsb_control *control, struct rsb_guest *client);

/* {io} As in struct rsb_link_ops. */
void rsb_control_chan_data(
	struct rsb_control *control, uint64_t chan, struct rsb_bytes data, bool fin);
void rsb_control_chan_writable(struct rsb_control *control, uint64_t chan);
void rsb_control_chan_reset(struct rsb_control *control, uint64_t chan, int r);

#endif
