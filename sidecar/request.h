/* SPDX-License-Identifier: MIT */
#ifndef RSB_REQUEST_H
#define RSB_REQUEST_H

/*
 * One admitted request, from the gate to its one reply. Handlers are
 *	void rsb_serve_<op>(struct rsb_request *rq, const struct <request> *req)
 * for each op of the table that is not LOCAL; req views rq's own memory and lives until the reply.
 *
 * Which thread calls the handler: ops with INLINE the io thread; with WRITES or ORDERED the
 * session's one mutator, in FIFO order; the others a worker of the pool. The gate has seen to it
 * that "after" was executed. A handler replies exactly once, at once or (WAITS) later, from any
 * thread.
 */

#include <stdbool.h>

#include "proto/codec.h"
#include "proto/stream.h"
#include "util/list.h"
#include "util/loop.h"

struct rsb_sess;

struct rsb_request {
	struct rsb_sess *sess;              /* const; referenced until the reply */
	uint32_t op;                        /* const */
	uint32_t version;                   /* const; of the reply */
	uint64_t id;                        /* const; the call's */
	uint64_t after;                     /* const */
	uint64_t number;                    /* const; of the mutation that it is; 0: none */
	uint64_t fifo;                      /* const; the same, if it is executed here */
	bool of_before;                     /* const; another process began it: rsb_revival_has() */
	int bad;                            /* const; why it could not be decoded */
	struct rsb_msg *msg;                /* owned */
	struct rsb_bytes body;              /* views msg */
	size_t reserved;                    /* {io} bytes reserved for the reply */
	struct rsb_buf reply;               /* encoded by rsb_request_reply() */
	struct rsb_task task;               /* back to the io thread */
	struct rsb_list link;               /* of the queue that it waits in */
	void (*go)(struct rsb_request *rq); /* {io} rsb_request_after() */
	void (*cancel)(struct rsb_request *rq); /* {sess->lock} rsb_request_waits() */
	bool cancelled;                         /* {sess->lock} */
	void *priv;                             /* the handler's */
	_Alignas(16) uint8_t req[];             /* the decoded request */
};

/*
 * {any} Ends the request. error: 0 or negative errno; rep: the op's reply struct, only read during
 * this call, NULL for rsb_empty or on error. rq is gone afterwards.
 */
void rsb_request_reply(struct rsb_request *rq, int error, const void *rep);

/* {any} The same with what is in rq->reply already, encoded. */
void rsb_request_reply_encoded(struct rsb_request *rq);

/*
 * {any} For WAITS: from now on, until the reply, the io thread may call cancel(rq), once, because
 * the host cancels or the session ends; that must lead to a reply (EINTR). -EINTR: it was cancelled
 * already: reply with that at once. A handler that also puts rq where other threads find it makes
 * this call first, under the lock of that place, which cancel takes too; then neither a cancel nor
 * a grant in between is lost.
 */
rsb_nodiscard int rsb_request_waits(struct rsb_request *rq, void (*cancel)(struct rsb_request *rq));

/* ---- for the gate and for handlers that open channels before they wait; io thread ---- */

/* Calls go(rq) as soon as the mutation rq->after was executed: now, or later. */
void rsb_request_after(struct rsb_request *rq, void (*go)(struct rsb_request *rq));
/* Ends a wait of rsb_request_after() or rsb_request_waits(); without effect on one that runs. */
void rsb_request_cancel(struct rsb_request *rq);
/* A request for sess, in its table of calls; its msg is still to be set. -ENOMEM, -ENOSPC. */
rsb_nodiscard int rsb_request_new(struct rsb_sess *sess, const struct rsb_call_head *head,
	size_t reserved, struct rsb_request **ret_rq);

#endif
