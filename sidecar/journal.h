/* SPDX-License-Identifier: MIT */
#ifndef RSB_JOURNAL_H
#define RSB_JOURNAL_H

/*
 * What became of the mutations of each session, in a file that the kernel keeps when this process
 * is killed: a shared mapping of fixed size, into which begin and end of a mutation are a few
 * stores. The next process on the same boot and workspace goes on with the sessions in it
 * (PROTOCOL.md 3.9).
 *
 * A session has a part, and a part a slot for each of its last RSB_JOURNAL_SLOTS mutations, which
 * its FIFO number chooses. A newer mutation takes the slot of the oldest: the gate
 * (sidecar/dispatch.c) holds it back until the reply to that one is known to have arrived. An entry
 * begins to count by its number, and its reply by a digest over all of it, each stored last. So
 * being killed between two stores does no harm; and a file in which anything else does not fit is
 * void as a whole.
 *
 * The file has blocks for its head and for one part from its start, and for each other part from
 * the start of the session on that first needs it: 4 KiB and 544 KiB each, 8.5 MiB at most. Of
 * these, the slots that were used are in the memory of the process.
 *
 * All but the last section: one thread. Numbers of mutations go up within a session.
 */

#include <stdbool.h>

#include "util/buf.h"

#define RSB_JOURNAL_PARTS 16u
#define RSB_JOURNAL_SLOTS 1024u
/* Longer ones are not kept. A rename has four times the attributes of a file, which come near. */
#define RSB_JOURNAL_REPLY_MAX 512u
#define RSB_JOURNAL_SIZE (4096u + RSB_JOURNAL_PARTS * RSB_JOURNAL_SLOTS * 544u)

struct rsb_journal;
struct rsb_journal_part;

/*
 * path: a file of ours alone, made if need be. root_fd: the workspace. boot_id: of the kernel.
 * -EBUSY: another process has it; -EPERM: not a regular file of ours that nobody else may read.
 */
rsb_nodiscard int rsb_journal_open(
	const char *path, const char *boot_id, int root_fd, struct rsb_journal **ret_journal);
/* The file stays as it is. Parts are gone. NULL is fine. */
void rsb_journal_close(struct rsb_journal *journal);
RSB_DEFINE_CLEANUP(struct rsb_journal *, rsb_journal_close)

/* The sandbox of the last host; empty: none. */
struct rsb_bytes rsb_journal_sandbox(const struct rsb_journal *journal);
/* At most 128 bytes. */
void rsb_journal_set_sandbox(struct rsb_journal *journal, struct rsb_bytes id);

/* Whose part it is; ids have at most 16 bytes. */
struct rsb_journal_session {
	struct rsb_bytes client;
	struct rsb_bytes id;
};

/* Of a process before, or one that this one has let go. NULL: there is none. */
struct rsb_journal_part *rsb_journal_find(
	struct rsb_journal *journal, const struct rsb_journal_session *session);
/* A new one; epoch as below. NULL: all are in use, or the file system is full. */
struct rsb_journal_part *rsb_journal_new_part(
	struct rsb_journal *journal, const struct rsb_journal_session *session, uint64_t epoch);
/* This process uses it (no more): it is not found, and its place not given to another. */
void rsb_journal_hold(struct rsb_journal_part *part, bool held);
/* No other process goes on with it. NULL is fine. */
void rsb_journal_forget(struct rsb_journal_part *part);
void rsb_journal_forget_all(struct rsb_journal *journal);

/*
 * Numbers that stand for the epoch in which the session was last, and, until a mutation was begun
 * in that, the one before: a host that never heard of the last one comes from there.
 */
uint64_t rsb_journal_epoch(const struct rsb_journal_part *part);
uint64_t rsb_journal_epoch_before(const struct rsb_journal_part *part);
void rsb_journal_set_epoch(struct rsb_journal_part *part, uint64_t before, uint64_t epoch);
/* It only grows. */
uint64_t rsb_journal_incarnation(const struct rsb_journal_part *part);
void rsb_journal_set_incarnation(struct rsb_journal_part *part, uint64_t incarnation);
/* The last mutation that was begun; 0: none. */
uint64_t rsb_journal_begun(const struct rsb_journal_part *part);

/* ---- the session's mutator; part NULL is fine: nothing is noted ---- */

struct rsb_journal_call {
	uint64_t fifo;
	uint64_t id;
	uint32_t op;
};

void rsb_journal_begin(struct rsb_journal_part *part, const struct rsb_journal_call *call);
/* reply: the encoded message. */
void rsb_journal_end(struct rsb_journal_part *part, uint64_t fifo, struct rsb_bytes reply);
/* The reply that the call had. -ENODATA: its end is unknown, or was not kept; -ENOMEM. */
rsb_nodiscard int rsb_journal_recall(const struct rsb_journal_part *part,
	const struct rsb_journal_call *call, struct rsb_buf *reply);

#endif
