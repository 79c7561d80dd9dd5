/* SPDX-License-Identifier: MIT */
#ifndef RSB_FAKE_SIDECAR_H
#define RSB_FAKE_SIDECAR_H

/*
 * The far end of a link, in a thread: real upgrade, handshake and session, and a handful of
 * answers. Keeps its session over connections until told to forget it.
 *
 *	getattr		attributes with the inode number node.id
 *	write		counts; the offset of the reply says how many were executed, with it
 *	wait		never answered, but by cancel (EINTR)
 *	others		EOPNOTSUPP
 * What arrives on RSB_CHAN_STDIN(p) goes back on RSB_CHAN_STDOUT(p), once "spawn" of p opened both.
 */

#include <stdbool.h>

#include "util/secret.h"

#define FAKE_AHEAD_S 3600 /* its clock, of this machine's */

struct fake_sidecar;

struct fake_sidecar *fake_sidecar_new(const struct rsb_secret *key);
void fake_sidecar_free(struct fake_sidecar *fake);
/* A fresh connection; returns the host's descriptor. The one before is cut. */
int fake_sidecar_connect(struct fake_sidecar *fake);
/* Serves fd, which is taken, from now on. */
void fake_sidecar_serve(struct fake_sidecar *fake, int fd);
/* Cuts the connection without a word. */
void fake_sidecar_cut(struct fake_sidecar *fake);
/* The connection stays, but nothing is read or written any more, or is again. */
void fake_sidecar_freeze(struct fake_sidecar *fake, bool frozen);
/* Sends a reply EINTR to call id, which may have been answered or never made; 0: to all waits. */
void fake_sidecar_answer(struct fake_sidecar *fake, uint64_t id);
/* Cuts, and forgets the session: another epoch. */
void fake_sidecar_forget(struct fake_sidecar *fake);
/* Cuts; the next connection goes on anew, as with another process. */
void fake_sidecar_anew(struct fake_sidecar *fake, uint64_t fifo);
/* Cuts; its locks are lost. */
void fake_sidecar_lose_locks(struct fake_sidecar *fake);
/* Cuts after that many more frames were received; 0: never. */
void fake_sidecar_cut_after(struct fake_sidecar *fake, unsigned int n_frame);
/* Requests of that op that were executed. */
unsigned int fake_sidecar_seen(struct fake_sidecar *fake, uint32_t op);

#endif
