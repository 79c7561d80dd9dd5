/* SPDX-License-Identifier: MIT */
#include "sidecar/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "sidecar/ownfile.h"
#include "util/cleanup.h"

/* Goes up with every change of the layout. */
#define MAGIC UINT64_C(0x7273626a726e3031)
#define ID_MAX 16u
#define SANDBOX_MAX 128u
#define BOOT_ID_MAX 64u
#define PRIME UINT64_C(0x9e3779b97f4a7c15)

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

struct slot {
	uint64_t fifo; /* stored last at the begin; 0: never used */
	uint64_t call;
	uint32_t op;
	uint32_t size;
	uint64_t commit; /* stored last at the end: digest_of(); 0: not ended, or not kept */
	uint8_t reply[RSB_JOURNAL_REPLY_MAX];
};

struct owner {
	uint64_t client_size;
	uint64_t session_size;
	uint8_t client[ID_MAX];
	uint8_t session[ID_MAX];
};

struct part {
	uint64_t state; /* stored last: digest of owner; 0: free */
	struct owner owner;
	uint64_t epoch;
	uint64_t epoch_before;
	uint64_t incarnation;
	uint64_t begun; /* stored after the slot's number */
	uint8_t unused[RSB_JOURNAL_REPLY_MAX - 56];
	struct slot slots[RSB_JOURNAL_SLOTS];
};

/* What must be the same for the next process. */
struct site {
	uint64_t magic;
	uint64_t size;
	uint64_t dev;
	uint64_t ino;
	int64_t btime_sec;
	uint64_t btime_nsec;
	char boot_id[BOOT_ID_MAX];
};

struct head {
	struct site site;
	uint64_t sandbox_state; /* stored last: digest; 0: none */
	uint64_t sandbox_size;
	uint8_t sandbox[SANDBOX_MAX];
	uint8_t unused[4096 - sizeof(struct site) - 16 - SANDBOX_MAX];
};

struct file {
	struct head head;
	struct part parts[RSB_JOURNAL_PARTS];
};

_Static_assert(sizeof(struct slot) == 384, "a slot");
_Static_assert(sizeof(struct file) == RSB_JOURNAL_SIZE, "all of the file is used");

struct rsb_journal_part {
	struct part *part;
	bool held;
};

struct rsb_journal {
	struct file *file;
	int fd; /* has the lock */
	struct rsb_journal_part parts[RSB_JOURNAL_PARTS];
};

static uint64_t
mix(uint64_t digest, uint64_t word)
{
	digest = (digest ^ word) * PRIME;
	return digest ^ (digest >> 29);
}

/* Against accidents, not against somebody who may write the file. Never 0. */
static uint64_t
digest(uint64_t seed, const void *data, size_t size)
{
	const uint8_t *bytes = data;
	uint64_t all = mix(seed, size);

	while (size) {
		size_t n = rsb_min(size, sizeof(uint64_t));
		uint64_t word = 0;

		memcpy(&word, bytes, n);
		all = mix(all, word);
		bytes += n;
		size -= n;
	}
	return all ? all : 1;
}

static uint64_t
digest_of(const struct slot *slot)
{
	return digest(mix(mix(slot->fifo, slot->call), slot->op), slot->reply, slot->size);
}

/* ---- what another process left ---- */

static bool
slot_fits(const struct slot *slot, size_t index)
{
	if (slot->fifo == 0)
		return slot->commit == 0;
	if (slot->fifo % RSB_JOURNAL_SLOTS != index)
		return false;
	return slot->commit == 0 ||
	       (slot->size <= RSB_JOURNAL_REPLY_MAX && slot->commit == digest_of(slot));
}

static bool
part_fits(const struct part *part)
{
	uint64_t begun = 0;

	if (part->state == 0)
		return true;
	if (part->state != digest(0, &part->owner, sizeof(part->owner)) ||
		part->owner.client_size > ID_MAX || part->owner.session_size > ID_MAX)
		return false;
	for (size_t i = 0; i < RSB_JOURNAL_SLOTS; i++) {
		if (!slot_fits(&part->slots[i], i))
			return false;
		begun = rsb_max(begun, part->slots[i].fifo);
	}
	/* The one that the process was about to begin when it was killed may be ahead. */
	return part->begun == begun ||
	       (part->begun < begun && part->slots[begun % RSB_JOURNAL_SLOTS].commit == 0);
}

static bool
head_fits(const struct head *head, const struct site *site)
{
	if (memcmp(&head->site, site, sizeof(*site)) != 0)
		return false;
	return head->sandbox_state == 0 ||
	       (head->sandbox_size <= SANDBOX_MAX &&
		       head->sandbox_state == digest(0, head->sandbox, head->sandbox_size));
}

static bool
fits(const struct file *file, const struct site *site)
{
	if (!head_fits(&file->head, site))
		return false;
	for (size_t i = 0; i < RSB_JOURNAL_PARTS; i++)
		if (!part_fits(&file->parts[i]))
			return false;
	return true;
}

static void
take_over(struct part *part)
{
	for (size_t i = 0; i < RSB_JOURNAL_SLOTS; i++)
		part->begun = rsb_max(part->begun, part->slots[i].fifo);
}

/* ---- the file ---- */

static int
site_of(const char *boot_id, int root_fd, struct site *ret_site)
{
	struct statx st;

	*ret_site = (struct site){ .magic = MAGIC, .size = RSB_JOURNAL_SIZE };
	if (!boot_id[0] || strlen(boot_id) >= BOOT_ID_MAX)
		return -EINVAL;
	if (statx(root_fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) < 0)
		return -errno;
	ret_site->dev = ((uint64_t)st.stx_dev_major << 32) | st.stx_dev_minor;
	ret_site->ino = st.stx_ino;
	ret_site->btime_sec = st.stx_btime.tv_sec;
	ret_site->btime_nsec = st.stx_btime.tv_nsec;
	memcpy(ret_site->boot_id, boot_id, strlen(boot_id));
	return 0;
}

int
rsb_journal_open(
	const char *path, const char *boot_id, int root_fd, struct rsb_journal **ret_journal)
{
	RSB_CLEANUP(rsb_journal_closep) struct rsb_journal *journal = rsb_new(struct rsb_journal);
	struct site site;
	void *map;
	int r;

	if (!journal)
		return -ENOMEM;
	journal->fd = -1;
	r = site_of(boot_id, root_fd, &site);
	if (r < 0)
		return r;
	journal->fd = rsb_ownfile_open(path, RSB_JOURNAL_SIZE);
	if (journal->fd < 0)
		return journal->fd;
	map = mmap(NULL, RSB_JOURNAL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, journal->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	journal->file = map;
	(void)madvise(map, RSB_JOURNAL_SIZE, MADV_DONTFORK); /* they have no use for it */
	if (!fits(journal->file, &site)) {
		memset(journal->file, 0, sizeof(*journal->file));
		journal->file->head.site = site;
	}
	for (size_t i = 0; i < RSB_JOURNAL_PARTS; i++) {
		journal->parts[i].part = &journal->file->parts[i];
		take_over(journal->parts[i].part);
	}
	*ret_journal = rsb_steal(&journal);
	return 0;
}

void
rsb_journal_close(struct rsb_journal *journal)
{
	if (!journal)
		return;
	if (journal->file)
		(void)munmap(journal->file, RSB_JOURNAL_SIZE);
	rsb_cleanup_close(&journal->fd);
	free(journal);
}

struct rsb_bytes
rsb_journal_sandbox(const struct rsb_journal *journal)
{
	const struct head *head = &journal->file->head;

	return (struct rsb_bytes){
		.data = head->sandbox,
		.size = head->sandbox_state ? head->sandbox_size : 0,
	};
}

void
rsb_journal_set_sandbox(struct rsb_journal *journal, struct rsb_bytes id)
{
	struct rsb_bytes have = rsb_journal_sandbox(journal);
	struct head *head = &journal->file->head;

	if (id.size > SANDBOX_MAX ||
		(have.size == id.size && (!id.size || !memcmp(have.data, id.data, id.size))))
		return;
	publish(&head->sandbox_state, 0);
	head->sandbox_size = id.size;
	if (id.size)
		memcpy(head->sandbox, id.data, id.size);
	publish(&head->sandbox_state, digest(0, head->sandbox, id.size));
}

/* ---- parts ---- */

static bool
is_owner(const struct owner *owner, const struct rsb_journal_session *session)
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
	struct part *part;

	if (!p || session->client.size > ID_MAX || session->id.size > ID_MAX)
		return NULL;
	part = p->part;
	publish(&part->state, 0);
	memset(part, 0, sizeof(*part));
	part->owner.client_size = session->client.size;
	part->owner.session_size = session->id.size;
	if (session->client.size)
		memcpy(part->owner.client, session->client.data, session->client.size);
	if (session->id.size)
		memcpy(part->owner.session, session->id.data, session->id.size);
	part->epoch = epoch;
	part->epoch_before = epoch;
	publish(&part->state, digest(0, &part->owner, sizeof(part->owner)));
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
	return p->part->incarnation;
}

void
rsb_journal_set_incarnation(struct rsb_journal_part *p, uint64_t incarnation)
{
	publish(&p->part->incarnation, incarnation);
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
	struct slot *slot;

	if (!p)
		return;
	/* Whoever sends mutations has heard of this epoch. */
	if (p->part->epoch_before != p->part->epoch)
		publish(&p->part->epoch_before, p->part->epoch);
	slot = &p->part->slots[call->fifo % RSB_JOURNAL_SLOTS];
	publish(&slot->commit, 0);
	slot->call = call->id;
	slot->op = call->op;
	publish(&slot->fifo, call->fifo);
	publish(&p->part->begun, call->fifo);
}

void
rsb_journal_end(struct rsb_journal_part *p, uint64_t fifo, struct rsb_bytes reply)
{
	struct slot *slot;

	if (!p)
		return;
	slot = &p->part->slots[fifo % RSB_JOURNAL_SLOTS];
	if (slot->fifo != fifo || reply.size > RSB_JOURNAL_REPLY_MAX)
		return;
	slot->size = (uint32_t)reply.size;
	memcpy(slot->reply, reply.data, reply.size);
	publish(&slot->commit, digest_of(slot));
}

int
rsb_journal_recall(const struct rsb_journal_part *p, const struct rsb_journal_call *call,
	struct rsb_buf *reply)
{
	const struct slot *slot;

	if (!p)
		return -ENODATA;
	slot = &p->part->slots[call->fifo % RSB_JOURNAL_SLOTS];
	if (slot->fifo != call->fifo || slot->call != call->id || slot->op != call->op ||
		!slot->commit)
		return -ENODATA;
	return rsb_buf_append(reply, slot->reply, slot->size);
}
