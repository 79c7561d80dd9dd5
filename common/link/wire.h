/* SPDX-License-Identifier: MIT */
#ifndef RSB_WIRE_H
#define RSB_WIRE_H

/*
 * The host's end of one connection, from the upgrade request to its end: upgrade, handshake,
 * then frames both ways. Lives on a loop; knows nothing of sessions and calls. A connection
 * that broke is thrown away.
 */

#include "link/connect.h"
#include "proto/handshake.h"
#include "util/loop.h"

struct rsb_wire;

struct rsb_wire_ops {
	/* Fills in what rsb_handshake_hello() wants; views live until the next callback. */
	void (*hello)(void *arg, struct rsb_hello *hello);
	/* The handshake is over. Negative errno ends the connection. */
	int (*open)(void *arg, const struct rsb_welcome *welcome, uint64_t features);
	/* One frame of the peer, undecoded. Negative errno ends the connection. */
	int (*frame)(void *arg, struct rsb_bytes frame);
	/* All frames that had arrived were given. May flush. */
	void (*batch)(void *arg);
	/* Appends one encoded frame: 1; 0: nothing to send. */
	int (*fill)(void *arg, struct rsb_buf *frame);
	/*
	 * The last callback; the owner frees the wire here or later. text: a sentence or
	 * empty.
	 */
	void (*closed)(void *arg, int r, const char *text);
};

struct rsb_wire_config {
	struct rsb_loop *loop;
	struct rsb_connect *connect;  /* taken, also on failure */
	const struct rsb_secret *key; /* lives as long as the wire */
	const char *const *headers;   /* for the upgrade; may be NULL; used only during new */
	uint64_t deadline_ns;         /* for upgrade and handshake */
	const struct rsb_wire_ops *ops;
	void *arg;
};

struct rsb_wire_stats {
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t frames_in;
	uint64_t frames_out;
};

rsb_nodiscard int rsb_wire_new(const struct rsb_wire_config *config, struct rsb_wire **ret_wire);
/* No callback comes afterwards. NULL is fine. */
void rsb_wire_free(struct rsb_wire *wire);
RSB_DEFINE_CLEANUP(struct rsb_wire *, rsb_wire_free)
bool rsb_wire_is_open(const struct rsb_wire *wire);
/*
 * Sends what there is to send, as far as the socket takes it; goes on by itself. An error
 * ends the connection: closed does not come.
 */
rsb_nodiscard int rsb_wire_flush(struct rsb_wire *wire);
/* Says BYE and closes in order, as far as the socket takes it at once. */
void rsb_wire_bye(struct rsb_wire *wire);
/* Since the last call; sets them to zero. */
void rsb_wire_stats(struct rsb_wire *wire, struct rsb_wire_stats *ret_stats);

#endif
