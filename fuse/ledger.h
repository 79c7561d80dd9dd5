/* SPDX-License-Identifier: MIT */
#ifndef RSB_LEDGER_H
#define RSB_LEDGER_H

/*
 * The entries of the shared mapping as the daemon of the moment works with them: which are free,
 * and which request is where. What is entered here before it can be seen outside, and struck out
 * after its last effect, is what the next daemon goes on with.
 *
 *  - A flight is in from before its handler gives it away until its answer was given and nothing
 *    of it is under way any more.
 *  - A call is in from before its first byte can leave until its reply has had all its effects;
 *    the link acknowledges the reply only after that. So of every call that is in, the sidecar
 *    never heard, or executes it, or keeps the reply.
 *
 * Under the lock of fuse/fs.h.
 */

#include "fuse/arena.h"
#include "util/map.h"

struct rsb_ledger;

/* Borrows shared. Frees what does not count: after a crash it finds out anew. */
rsb_nodiscard int rsb_ledger_new(struct rsb_shared *shared, struct rsb_ledger **ret_ledger);
void rsb_ledger_free(struct rsb_ledger *ledger);
RSB_DEFINE_CLEANUP(struct rsb_ledger *, rsb_ledger_free)

struct rsb_arena *rsb_ledger_arena(struct rsb_ledger *ledger);

/* Enters a copy of from, with raw. -ENFILE, -ENOBUFS, -ENOMEM. */
rsb_nodiscard int rsb_ledger_flight(struct rsb_ledger *ledger, const struct rsb_shared_flight *from,
	struct rsb_bytes raw, struct rsb_shared_flight **ret_flight);
void rsb_ledger_end_flight(struct rsb_ledger *ledger, struct rsb_shared_flight *flight);
/* NULL: none such. */
struct rsb_shared_flight *rsb_ledger_flight_of(const struct rsb_ledger *ledger, uint64_t unique);

/* from: op, call, unique, mark. Errors as above. */
rsb_nodiscard int rsb_ledger_call(struct rsb_ledger *ledger, const struct rsb_shared_call *from,
	struct rsb_bytes req, struct rsb_shared_call **ret_call);
void rsb_ledger_end_call(struct rsb_ledger *ledger, struct rsb_shared_call *call);

/* from: flags, fh, nodeid, opening. -ENFILE. */
rsb_nodiscard int rsb_ledger_handle(struct rsb_ledger *ledger, const struct rsb_shared_handle *from,
	struct rsb_shared_handle **ret_handle);
void rsb_ledger_end_handle(struct rsb_ledger *ledger, struct rsb_shared_handle *handle);

#endif
