/* SPDX-License-Identifier: MIT */
#ifndef RSB_ATTEMPT_H
#define RSB_ATTEMPT_H

/*
 * One attempt to connect, on a short-lived thread of its own, because names, proxies and TLS
 * may take their time and the io thread must not wait. It ends in a task on the loop, always,
 * also when it was aborted.
 */

#include "link/connect.h"
#include "util/loop.h"

struct rsb_attempt;

typedef void (*rsb_attempt_fn)(void *arg, struct rsb_attempt *attempt);

/*
 * Any thread. Copies target; a descriptor in it is taken, also on failure. Does not start
 * yet.
 */
rsb_nodiscard int rsb_attempt_new(
	const struct rsb_link_target *target, struct rsb_attempt **ret_attempt);
/* Not between start and its end. NULL is fine. */
void rsb_attempt_free(struct rsb_attempt *attempt);
RSB_DEFINE_CLEANUP(struct rsb_attempt *, rsb_attempt_free)

/* fn comes on the loop's thread, once. */
rsb_nodiscard int rsb_attempt_start(
	struct rsb_attempt *attempt, struct rsb_loop *loop, rsb_attempt_fn fn, void *arg);
/* Any thread; fn comes soon, with -ECANCELED unless it was done. */
void rsb_attempt_abort(struct rsb_attempt *attempt);

/* In fn: the connection (the caller's from now on), or why there is none. */
rsb_nodiscard int rsb_attempt_result(struct rsb_attempt *attempt, struct rsb_connect **ret_connect);
/* The sentence about a failure. */
const char *rsb_attempt_text(const struct rsb_attempt *attempt);
/* For the upgrade. */
const char *const *rsb_attempt_headers(const struct rsb_attempt *attempt);
/* When connection and handshake must be done; 0 before start. */
uint64_t rsb_attempt_deadline(const struct rsb_attempt *attempt);

#endif
