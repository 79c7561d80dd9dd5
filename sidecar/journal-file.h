/* SPDX-License-Identifier: MIT */
#ifndef RSB_JOURNAL_FILE_H
#define RSB_JOURNAL_FILE_H

/*
 * What sidecar/journal.h's file consists of, and what has to be true of it; private to
 * sidecar/journal.c. A page with the heads of all parts, then the slots of each. Slots get their
 * blocks when the part is first used; before, nothing even reads them, since a hole that is read
 * through a mapping needs a block as well.
 */

#include "sidecar/journal.h"

#define RSB_JOURNAL_ID_MAX 16u
#define RSB_JOURNAL_SANDBOX_MAX 128u
#define RSB_JOURNAL_BOOT_ID_MAX 64u
#define RSB_JOURNAL_HEAD_SIZE 4096u

struct rsb_journal_slot {
	uint64_t fifo; /* stored last at the begin; 0: never used */
	uint64_t call;
	uint32_t op;
	uint32_t size;
	uint64_t commit; /* stored last at the end: its digest; 0: not ended, or not kept */
	uint8_t reply[RSB_JOURNAL_REPLY_MAX];
};

struct rsb_journal_owner {
	uint64_t client_size;
	uint64_t session_size;
	uint8_t client[RSB_JOURNAL_ID_MAX];
	uint8_t session[RSB_JOURNAL_ID_MAX];
};

/* A number that only grows: the higher one of those whose digest is right. The other is stored. */
struct rsb_journal_count {
	uint64_t value;
	uint64_t digest; /* stored last */
};

struct rsb_journal_part_head {
	uint64_t state; /* stored last: digest of owner; 0: free */
	struct rsb_journal_owner owner;
	uint64_t epoch;
	uint64_t epoch_before;
	struct rsb_journal_count incarnation[2];
	uint64_t begun; /* stored after the slot's number */
};

/* What must be the same for the next process. */
struct rsb_journal_site {
	uint64_t magic;
	uint64_t size;
	uint64_t dev;
	uint64_t ino;
	int64_t btime_sec;
	uint64_t btime_nsec;
	char boot_id[RSB_JOURNAL_BOOT_ID_MAX];
};

struct rsb_journal_head {
	struct rsb_journal_site site;
	uint64_t sandbox_state; /* stored last: digest; 0: none */
	uint64_t sandbox_size;
	uint8_t sandbox[RSB_JOURNAL_SANDBOX_MAX];
	struct rsb_journal_part_head parts[RSB_JOURNAL_PARTS];
};

struct rsb_journal_file {
	union {
		struct rsb_journal_head head;
		uint8_t page[RSB_JOURNAL_HEAD_SIZE];
	};
	struct rsb_journal_slot slots[RSB_JOURNAL_PARTS][RSB_JOURNAL_SLOTS];
};

_Static_assert(sizeof(struct rsb_journal_head) <= RSB_JOURNAL_HEAD_SIZE, "the heads fit");
_Static_assert(sizeof(struct rsb_journal_file) == RSB_JOURNAL_SIZE, "all of the file is used");

/* Against accidents, not against somebody who may write the file. Never 0. */
uint64_t rsb_journal_digest(const void *data, size_t size);
uint64_t rsb_journal_slot_digest(const struct rsb_journal_slot *slot);
/* The one of the two that counts; NULL: none. */
const struct rsb_journal_count *rsb_journal_count(const struct rsb_journal_count pair[static 2]);

/* As rsb_journal_open(); what does not fit is void, and the file begins anew. */
rsb_nodiscard int rsb_journal_file_open(const char *path, const char *boot_id, int root_fd,
	struct rsb_journal_file **ret_file, int *ret_fd);
void rsb_journal_file_close(struct rsb_journal_file *file, int *fd); /* NULL is fine */
/* A part whose slots are about to be used. -ENOSPC. */
rsb_nodiscard int rsb_journal_file_allocate(int fd, size_t part);

#endif
