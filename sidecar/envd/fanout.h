/* SPDX-License-Identifier: MIT */
#ifndef RSB_FANOUT_H
#define RSB_FANOUT_H

/*
 * Fans the events of one process out to the clients that watch it. A slow client fills its own
 * buffer up to RSB_FANOUT_HIGH; then the process's output waits until that client has read on.
 * Nothing is kept for clients that come later.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "sidecar/envd/connectrpc.h"
#include "util/buf.h"

#define RSB_FANOUT_HIGH ((size_t)256 << 10)
#define RSB_FANOUT_MAX ((size_t)1 << 20) /* with one more event of every kind */
#define RSB_FANOUT_CLIENTS_MAX 64U

struct rsb_fanout;
struct rsb_watcher;

rsb_nodiscard int rsb_fanout_new(struct rsb_fanout **ret_fanout);
/* Streams that still exist keep it alive. NULL is fine. */
void rsb_fanout_free(struct rsb_fanout *fanout);
/* Readable when a full stream was drained; reading it resets it. */
int rsb_fanout_drain_fd(const struct rsb_fanout *fanout);
/* True while a stream is over RSB_FANOUT_HIGH: push nothing but the end then. */
bool rsb_fanout_full(struct rsb_fanout *fanout);
/* Envelopes, to every stream. A stream without memory for them is ended. */
void rsb_fanout_push(struct rsb_fanout *fanout, struct rsb_bytes envelopes);
/* The last envelopes, to clients that come later too. Nothing follows. */
void rsb_fanout_end(struct rsb_fanout *fanout, struct rsb_bytes envelopes);

/* A client's end, with the envelopes of first already in it. -EAGAIN over the number of clients. */
rsb_nodiscard int rsb_watcher_new(struct rsb_fanout *fanout, uint64_t keepalive_ns,
	struct rsb_bytes first, struct rsb_watcher **ret_stream);
/* NULL is fine. */
void rsb_watcher_free(struct rsb_watcher *stream);

/*
 * Waits for bytes; 0 at the end, -EPIPE when client_fd was closed by its peer. Sends keep-alive
 * envelopes. On the client's thread.
 */
rsb_nodiscard ssize_t rsb_watcher_read(
	struct rsb_watcher *stream, int client_fd, uint8_t *out, size_t size);

RSB_DEFINE_CLEANUP(struct rsb_watcher *, rsb_watcher_free)

#endif
