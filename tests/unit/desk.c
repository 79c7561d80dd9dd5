/* SPDX-License-Identifier: MIT */
#include "tests/unit/desk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void
desk_open(struct desk *desk)
{
	ck_assert_int_eq(rsb_journal_open(desk->path, DESK_BOOT, desk->root_fd, &desk->journal), 0);
}

void
desk_init(struct desk *desk)
{
	(void)strcpy(desk->dir, "/tmp/rsb-journal-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(desk->dir));
	(void)snprintf(desk->path, sizeof(desk->path), "%s/journal", desk->dir);
	desk->root_fd = open("/tmp", O_PATH | O_CLOEXEC);
	desk_open(desk);
}

void
desk_reopen(struct desk *desk)
{
	rsb_journal_close(desk->journal);
	desk_open(desk);
}

void
desk_done(struct desk *desk)
{
	rsb_journal_close(desk->journal);
	(void)close(desk->root_fd);
	unit_remove_tree(desk->dir);
}

struct rsb_journal_session
desk_session(const char *id)
{
	return (struct rsb_journal_session){
		.client = rsb_bytes_str("client"),
		.id = rsb_bytes_str(id),
	};
}

struct rsb_journal_part *
desk_new_part(struct desk *desk, const char *id)
{
	const struct rsb_journal_session whose = desk_session(id);
	struct rsb_journal_part *part = rsb_journal_new_part(desk->journal, &whose, DESK_EPOCH);

	ck_assert_ptr_nonnull(part);
	rsb_journal_hold(part, true);
	return part;
}

struct rsb_journal_part *
desk_find(struct desk *desk, const char *id)
{
	const struct rsb_journal_session whose = desk_session(id);

	return rsb_journal_find(desk->journal, &whose);
}

struct rsb_journal_call
desk_call(uint64_t fifo)
{
	return (struct rsb_journal_call){ .fifo = fifo, .id = fifo + 1000, .op = 16 };
}

void
desk_begin(struct rsb_journal_part *part, uint64_t fifo)
{
	const struct rsb_journal_call call = desk_call(fifo);

	rsb_journal_begin(part, &call);
}

void
desk_end(struct rsb_journal_part *part, uint64_t fifo)
{
	char reply[32];

	(void)snprintf(reply, sizeof(reply), "reply %u", (unsigned int)fifo);
	rsb_journal_end(part, fifo, rsb_bytes_str(reply));
}

void
desk_mutate(struct rsb_journal_part *part, uint64_t first, uint64_t last)
{
	for (uint64_t fifo = first; fifo <= last; fifo++) {
		desk_begin(part, fifo);
		desk_end(part, fifo);
	}
}

int
desk_recall(const struct rsb_journal_part *part, uint64_t fifo)
{
	const struct rsb_journal_call call = desk_call(fifo);
	char expected[32];
	struct rsb_buf reply;
	int r;

	rsb_buf_init(&reply, 1024);
	r = rsb_journal_recall(part, &call, &reply);
	ck_assert(r == 0 || r == -ENODATA);
	if (r == 0) {
		(void)snprintf(expected, sizeof(expected), "reply %u", (unsigned int)fifo);
		ck_assert_uint_eq(rsb_buf_len(&reply), strlen(expected));
		ck_assert_mem_eq(rsb_buf_head(&reply), expected, strlen(expected));
	}
	rsb_buf_done(&reply);
	return r == 0;
}
