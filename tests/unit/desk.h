/* SPDX-License-Identifier: MIT */
#ifndef RSB_DESK_H
#define RSB_DESK_H

/* A journal in a directory of its own. */

#include "sidecar/journal.h"
#include "tests/unit/unit.h"

#define DESK_BOOT "421ae615-5bc9-48f8-a711-6735eed8605e"
#define DESK_EPOCH UINT64_C(0x1234567800000000)

struct desk {
	char dir[64];
	char path[96];
	int root_fd;
	struct rsb_journal *journal;
};

void desk_init(struct desk *desk);
void desk_done(struct desk *desk);
void desk_open(struct desk *desk);
/* What another process does after this one was killed: nothing is said to the file. */
void desk_reopen(struct desk *desk);

struct rsb_journal_session desk_session(const char *id);
/* Held. */
struct rsb_journal_part *desk_new_part(struct desk *desk, const char *id);
struct rsb_journal_part *desk_find(struct desk *desk, const char *id);

/* Calls have the number of their mutation and 1000. */
struct rsb_journal_call desk_call(uint64_t fifo);
void desk_begin(struct rsb_journal_part *part, uint64_t fifo);
void desk_end(struct rsb_journal_part *part, uint64_t fifo);
void desk_mutate(struct rsb_journal_part *part, uint64_t first, uint64_t last);
/* 1: its reply; 0: nobody knows; fails the test on anything else. */
int desk_recall(const struct rsb_journal_part *part, uint64_t fifo);

#endif
