/* SPDX-License-Identifier: MIT */
#ifndef RSB_CLIENT_H
#define RSB_CLIENT_H

/*
 * A program's connection to the session daemon: calls and byte streams over its control socket
 * (link/ctl.h), on one loop and one thread.
 */

#include "keeper/state.h"
#include "proto/chan.h"
#include "proto/op.h"
#include "util/diag.h"
#include "util/loop.h"

struct rsb_client;

struct rsb_client_ops {
	/* Streams; as in proto/chan.h. */
	struct rsb_chan_ops chans;
	/*
	 * The daemon is gone; every waiting call has ended with -ENOTCONN. Not during
	 * rsb_client_open(), which returns that.
	 */
	void (*closed)(void *arg, int r);
};

/* r and rep as in link/link.h. */
typedef void (*rsb_client_fn)(void *arg, int r, const void *rep);

/*
 * Connects to the socket at path and says hello, which waits up to 30 s. ops and arg live as long
 * as the client. -ENOENT and -ECONNREFUSED: nobody serves there; -EPROTO: another version.
 */
rsb_nodiscard int rsb_client_open(struct rsb_loop *loop, const char *path,
	const struct rsb_client_ops *ops, void *arg, struct rsb_client **ret_client,
	struct rsb_diag *diag);
void rsb_client_free(struct rsb_client *client); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_client *, rsb_client_free)

/* fn is called exactly once, unless the client is freed before. req NULL: rsb_empty. */
rsb_nodiscard int rsb_client_call(
	struct rsb_client *client, uint32_t op, const void *req, rsb_client_fn fn, void *arg);
/*
 * The same, turning the loop until the answer is there; copy (may be NULL) sees the reply.
 * -ETIMEDOUT after timeout_ns (0: for ever).
 */
rsb_nodiscard int rsb_client_call_wait(struct rsb_client *client, uint32_t op, const void *req,
	uint64_t timeout_ns, void (*copy)(void *arg, const void *rep), void *arg);

/* For rsb_chan_*(); call rsb_client_kick() after having written, consumed or closed. */
struct rsb_chans *rsb_client_chans(struct rsb_client *client);
void rsb_client_kick(struct rsb_client *client);

/* A number for a process that was not used before on this connection. */
uint64_t rsb_client_new_proc(struct rsb_client *client);

#endif
