/* SPDX-License-Identifier: MIT */
#include "sidecar/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sidecar/journal-file.h"
#include "util/cleanup.h"

/*
 * The stores before come first, for whoever looks after this process was killed: what it had
 * executed then is a prefix of the program, so only the compiler has to be held back.
 */
#define publish(place, value)                                         \
	do {                                                          \
		__atomic_signal_fence(__ATOMIC_SEQ_CST);              \
		__atomic_store_n((place), (value), __ATOMIC_RELEASE); \
		__atomic_signal_fence(__ATOMIC_SEQ_CST);              \
	} while (0)

struct rsb_journal_part {
	struct rsb_journal_part_head *part;
	struct rsb_journal_slot *slots;
	bool held;
};

struct rsb_journal {
	struct rsb_journal_file *file;
	int fd; /* has the lock */
	struct rsb_journal_part parts[RSB_JOURNAL_PARTS];
};

int
rsb_journal_open(
	const char *path, const char *boot_id, int root_fd, struct rsb_journal **ret_journal)
{
	struct rsb_journal *journal = rsb_new(struct rsb_journal);
	int r;

	if (!journal)
		return -ENOMEM;
	r = rsb_journal_file_open(path, boot_id, root_fd, &journal->file, &journal->fd);
	if (r < 0) {
		free(journal);
		return r;
	}
	for (size_t i = 0; i < RSB_JOURNAL_PARTS; i++) {
		journal->parts[i].part = &journal->file->head.parts[i];
		journal->parts[i].slots = journal->file->slots[i];
	}
	*ret_journal = journal;
	return 0;
}

void
rsb_journal_close(struct rsb_journal *journal)
{
	if (!journal)
		return;
	rsb_journal_file_close(journal->file, &journal->fd);
	free(journal);
}

struct rsb_bytes
rsb_journal_sandbox(const struct rsb_journal *journal)
{
	const struct rsb_journal_head *head = &journal->file->head;

	return (struct rsb_bytes){
		.data = head->sandbox,
		.size = head->sandbox_state ? head->sandbox_size : 0,
	};
}

void
rsb_journal_set_sandbox(struct rsb_journal *journal, struct rsb_bytes id)
{
	struct rsb_bytes have = rsb_journal_sandbox(journal);
	struct rsb_journal_head *head = &journal->file->head;

	if (id.size > RSB_JOURNAL_SANDBOX_MAX ||
		(have.size == id.size && (!id.size || !memcmp(have.data, id.data, id.size))))
		return;
	publish(&head->sandbox_state, 0);
	head->sandbox_size = id.size;
	if (id.size)
		memcpy(head->sandbox, id.data, id.size);
	publish(&head->sandbox_state, rsb_journal_digest(head->sandbox, id.size));
}

/* ---- parts ---- */

static bool
is_owner(const struct rsb_journal_owner *owner, const struct rsb_journal_session *session)
{
	return owner->client_size == session->client.size &&
	       owner->session_size == session->id.size &&
	       (!session->client.size ||
		       memcmp(owner->client, session->client.data, session->client.size) == 0) &&
	       (!session->id.size ||
		       memcmp(owner->session, session->id.data, session->id.size) == 0);
}

struct rsb_journal_part *
rsb_journal_find(struct rsb_journal *journal, const struct rsb_journal_session *session)
{
	for (size_t i = 0; i < RSB_JOURNAL_PARTS; i++) {
		struct rsb_journal_part *p = &journal->parts[i];

		if (!p->held && p->part->state && is_owner(&p->part->owner, session))
			return p;
	}
	return NULL;
}

/* One that is free, else one that nobody came back for. */
static struct rsb_journal_part *
find_place(struct rsb_journal *journal)
{
	struct rsb_journal_part *left = NULL;

	for (size_t i = 0; i < RSB_JOURNAL_PARTS; i++) {
		struct rsb_journal_part *p = &journal->parts[i];

		if (p->held)
			continue;
		if (!p->part->state)
			return p;
		left = p;
	}
	return left;
}

struct rsb_journal_part *
rsb_journal_new_part(
	struct rsb_journal *journal, const struct rsb_journal_session *session, uint64_t epoch)
{
	struct rsb_journal_part *p = find_place(journal);
	struct rsb_journal_part_head *part;

	if (!p || session->client.size > RSB_JOURNAL_ID_MAX ||
		session->id.size > RSB_JOURNAL_ID_MAX)
		return NULL;
	if (rsb_journal_file_allocate(journal->fd, (size_t)(p - journal->parts)) < 0)
		return NULL;
	part = p->part;
	publish(&part->state, 0);
	memset(part, 0, sizeof(*part));
	memset(p->slots, 0, RSB_JOURNAL_SLOTS * sizeof(*p->slots));
	part->owner.client_size = session->client.size;
	part->owner.session_size = session->id.size;
	if (session->client.size)
		memcpy(part->owner.client, session->client.data, session->client.size);
	if (session->id.size)
		memcpy(part->owner.session, session->id.data, session->id.size);
	part->epoch = epoch;
	part->epoch_before = epoch;
	rsb_journal_set_incarnation(p, 0);
	publish(&part->state, rsb_journal_digest(&part->owner, sizeof(part->owner)));
	return p;
}

void
rsb_journal_hold(struct rsb_journal_part *p, bool held)
{
	p->held = held;
}

void
rsb_journal_forget(struct rsb_journal_part *p)
{
	if (p)
		publish(&p->part->state, 0);
}

void
rsb_journal_forget_all(struct rsb_journal *journal)
{
	for (size_t i = 0; i < RSB_JOURNAL_PARTS; i++)
		rsb_journal_forget(&journal->parts[i]);
}

uint64_t
rsb_journal_epoch(const struct rsb_journal_part *p)
{
	return p->part->epoch;
}

uint64_t
rsb_journal_epoch_before(const struct rsb_journal_part *p)
{
	return p->part->epoch_before;
}

void
rsb_journal_set_epoch(struct rsb_journal_part *p, uint64_t before, uint64_t epoch)
{
	publish(&p->part->epoch_before, before);
	publish(&p->part->epoch, epoch);
}

uint64_t
rsb_journal_incarnation(const struct rsb_journal_part *p)
{
	/* It was looked at when the file was opened, and one of the two is there at any time. */
	return rsb_journal_count(p->part->incarnation)->value;
}

void
rsb_journal_set_incarnation(struct rsb_journal_part *p, uint64_t incarnation)
{
	struct rsb_journal_count *pair = p->part->incarnation;
	struct rsb_journal_count *other = rsb_journal_count(pair) == &pair[0] ? &pair[1] : &pair[0];

	publish(&other->digest, 0);
	other->value = incarnation;
	publish(&other->digest, rsb_journal_digest(&incarnation, sizeof(incarnation)));
}

uint64_t
rsb_journal_begun(const struct rsb_journal_part *p)
{
	return p->part->begun;
}

/* ---- mutations ---- */

void
rsb_journal_begin(struct rsb_journal_part *p, const struct rsb_journal_call *call)
{
	struct rsb_journal_slot *slot;

	if (!p)
		return;
	/* Whoever sends mutations has heard of this epoch. */
	if (p->part->epoch_before != p->part->epoch)
		publish(&p->part->epoch_before, p->part->epoch);
	slot = &p->slots[call->fifo % RSB_JOURNAL_SLOTS];
	publish(&slot->commit, 0);
	slot->call = call->id;
	slot->op = call->op;
	publish(&slot->fifo, call->fifo);
	publish(&p->part->begun, call->fifo);
}

void
rsb_journal_end(struct rsb_journal_part *p, uint64_t fifo, struct rsb_bytes reply)
{
	struct rsb_journal_slot *slot;

	if (!p)
		return;
	slot = &p->slots[fifo % RSB_JOURNAL_SLOTS];
	if (slot->fifo != fifo || reply.size > RSB_JOURNAL_REPLY_MAX)
		return;
	slot->size = (uint32_t)reply.size;
	memcpy(slot->reply, reply.data, reply.size);
	publish(&slot->commit, rsb_journal_slot_digest(slot));
}

int
rsb_journal_recall(const struct rsb_journal_part *p, const struct rsb_journal_call *call,
	struct rsb_buf *reply)
{
	const struct rsb_journal_slot *slot;

	if (!p)
		return -ENODATA;
	slot = &p->slots[call->fifo % RSB_JOURNAL_SLOTS];
	if (slot->fifo != call->fifo || slot->call != call->id || slot->op != call->op ||
		!slot->commit)
		return -ENODATA;
	return rsb_buf_append(reply, slot->reply, slot->size);
}
