/* SPDX-License-Identifier: MIT */
#ifndef RSB_SEND_H
#define RSB_SEND_H

/*
 * The way of every call of the mount into the link. When the link has no room (-EAGAIN) the call
 * is parked, as encoded bytes and in order, and tried again whenever another one was answered; so
 * no thread waits or spins, and mutations keep their order. At most RSB_SEND_PARKED_MAX wait, then
 * calls fail with -ENOBUFS.
 *
 * What changes anything or waits for something is entered in the ledger first, so that the next
 * process can make the call again under the same number. Calls of commands are not: they end with
 * the process of whoever started them.
 *
 * Callbacks run on the io thread under the lock of fuse/fs.h.
 */

#include "link/link.h"

#define RSB_SEND_PARKED_MAX 65536u

struct rsb_fop;
struct rsb_fs;
struct rsb_send;
struct rsb_shared_call;

rsb_nodiscard int rsb_send_new(struct rsb_fs *fs, struct rsb_send **ret_send);
/* Calls that are still parked end with -ECANCELED. */
void rsb_send_free(struct rsb_send *send);
RSB_DEFINE_CLEANUP(struct rsb_send *, rsb_send_free)

/*
 * fn is called exactly once after 0, never before this returns. It is executed after all
 * mutations that were sent before. *ret_serial (may be NULL) names it for cancel.
 */
rsb_nodiscard int rsb_send_call(struct rsb_send *send, uint32_t op, const void *req, rsb_call_fn fn,
	void *arg, uint64_t *ret_serial);
/*
 * The one call that fop makes now; fn gets fop. After a crash it is the call that the request had
 * made already, if that was the same op.
 */
rsb_nodiscard int rsb_send_call_of(
	struct rsb_fop *fop, uint32_t op, const void *req, rsb_call_fn fn, uint64_t *ret_serial);
/* A write of handle's data; with its reply all up to mark (0: not said) has arrived. */
rsb_nodiscard int rsb_send_write(struct rsb_send *send, const struct rsb_write_req *req,
	uint64_t mark, rsb_call_fn fn, void *arg);
/* A call whose reply nobody needs. */
void rsb_send_post(struct rsb_send *send, uint32_t op, const void *req);
/* Asks the far side to give it up; fn still comes. */
void rsb_send_cancel(struct rsb_send *send, uint64_t serial);
/*
 * fn comes soon, whatever the link does, maybe before this returns: -ECANCELED: nothing was sent
 * and nothing will be; -ENOTCONN: it was sent, and nobody knows.
 */
void rsb_send_withdraw(struct rsb_send *send, uint64_t serial);
/* Tries parked calls again; done after every reply too. */
void rsb_send_retry(struct rsb_send *send);
/*
 * One of those by which a session is brought up anew (fuse/revive.h), which nobody makes again;
 * req may be a mutation. -EAGAIN: there is no room.
 */
rsb_nodiscard int rsb_send_first(
	struct rsb_send *send, uint32_t op, const void *req, rsb_call_fn fn, void *arg);
/* The sidecar is another one: what is parked was for the old one. */
void rsb_send_reset(struct rsb_send *send);
/* Calls not answered yet. */
size_t rsb_send_pending(const struct rsb_send *send);
size_t rsb_send_parked(const struct rsb_send *send);

/*
 * For fuse/resend.c: makes a call of the process before again, under its number. lost: its session
 * is gone, it is not sent, and ends by rsb_send_end_lost(). Until its reply another fn may claim
 * it: then arg is freed, by free(3).
 */
rsb_nodiscard int rsb_send_again(struct rsb_send *send, struct rsb_shared_call *shared, bool lost,
	rsb_call_fn fn, void *arg, uint64_t *ret_serial);
void rsb_send_claim(struct rsb_send *send, uint64_t serial, rsb_call_fn fn, void *arg);
void rsb_send_end_lost(struct rsb_send *send);

/* The gifts of the sidecar that nobody holds any more; sent in batches. */
void rsb_send_forget(struct rsb_send *send, uint64_t id, uint64_t n);
/* Sends what has gathered. */
void rsb_send_flush_forgets(struct rsb_send *send);
/* It was of a sidecar that ended: the next one is told how often it has given out a node. */
void rsb_send_drop_forgets(struct rsb_send *send);

#endif
