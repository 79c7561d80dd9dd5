/* SPDX-License-Identifier: MIT */
#ifndef RSB_REGISTRY_H
#define RSB_REGISTRY_H

/*
 * The sessions that this sidecar remembers, and the epoch that says which memory that is. A hello
 * with another sandbox id than the last one comes to a fork's copy of this memory, and one whose
 * numbers do not fit comes to memory that was rolled back: in both cases every session ends and the
 * generation moves on, so that no host takes this memory for the one it knew. What a process before
 * this one had is in the journal, if there is one. All on the io thread.
 */

#include "proto/op.h"
#include "sidecar/sess.h"
#include "util/diag.h"

struct rsb_registry;

/* The pool is borrowed, and outlives the registry. */
rsb_nodiscard int rsb_registry_new(const struct rsb_sidecar_config *config, struct rsb_loop *loop,
	struct rsb_workers *pool, struct rsb_registry **ret_registry);
/* All sessions must have ended. NULL is fine. */
void rsb_registry_free(struct rsb_registry *registry);

/* NUL-terminated, at most 64 bytes. */
const char *rsb_registry_epoch(const struct rsb_registry *registry);
const char *rsb_registry_boot_id(const struct rsb_registry *registry);

/* A connection that has said hello. All borrowed; zip (NULL: not agreed on) until detach. */
struct rsb_join {
	const struct rsb_hello *hello;
	uint32_t version; /* agreed on */
	struct rsb_carrier *carrier;
	struct rsb_zip *zip;
};

struct rsb_joined {
	struct rsb_sess *sess;
	bool resumed; /* it was in this memory */
	bool anew;    /* it was in that of a process before, as PROTOCOL.md 3.9 */
};

/*
 * The session that hello names, attached to the carrier: the one of before when hello comes from
 * its epoch, or from one that the journal knows; else a new one. A full table forgets the session
 * that was detached longest; -EMFILE when there is none.
 */
rsb_nodiscard int rsb_registry_open(struct rsb_registry *registry, const struct rsb_join *join,
	struct rsb_joined *ret_joined, struct rsb_diag *diag);

/* Ends all sessions; idle(arg) comes when the last one is gone, maybe before this returns. */
void rsb_registry_end(struct rsb_registry *registry, void (*idle)(void *arg), void *arg);

#endif
