/* SPDX-License-Identifier: MIT */
#ifndef RSB_DISPATCH_H
#define RSB_DISPATCH_H

/*
 * The one gate between the stream and the handlers. A message is taken from the stream only when
 * space for its reply is reserved; then it is checked, decoded, held until the mutation it names
 * was executed, and routed to the thread of its op. Everything that a host may ask for passes here,
 * and nothing else calls a handler.
 */

#include "util/macro.h"

struct rsb_request;
struct rsb_sess;

/* {io} Admits what came in, as far as there is space for replies. */
void rsb_dispatch_pump(struct rsb_sess *sess);
/* {io} The mutation with this number was executed: requests that waited for it go on. */
void rsb_dispatch_executed(struct rsb_sess *sess, uint64_t fifo);
/* {any} Calls the handler, or replies why not: what a worker does with a request. */
void rsb_dispatch_run(struct rsb_request *rq);

#endif
