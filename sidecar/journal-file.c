/* SPDX-License-Identifier: MIT */
#define RSB_LOG_MODULE "journal"
#include "sidecar/journal-file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "sidecar/ownfile.h"
#include "util/cleanup.h"
#include "util/log.h"

/* Goes up with every change of the layout. */
#define MAGIC UINT64_C(0x7273626a726e3032)
#define PRIME UINT64_C(0x9e3779b97f4a7c15)

static uint64_t
mix(uint64_t digest, uint64_t word)
{
	digest = (digest ^ word) * PRIME;
	return digest ^ (digest >> 29);
}

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

uint64_t
rsb_journal_digest(const void *data, size_t size)
{
	return digest(0, data, size);
}

uint64_t
rsb_journal_slot_digest(const struct rsb_journal_slot *slot)
{
	return digest(mix(mix(slot->fifo, slot->call), slot->op), slot->reply, slot->size);
}

static bool
count_fits(const struct rsb_journal_count *count)
{
	return count->digest == digest(0, &count->value, sizeof(count->value));
}

const struct rsb_journal_count *
rsb_journal_count(const struct rsb_journal_count pair[static 2])
{
	if (!count_fits(&pair[0]))
		return count_fits(&pair[1]) ? &pair[1] : NULL;
	return count_fits(&pair[1]) && pair[1].value > pair[0].value ? &pair[1] : &pair[0];
}

/* ---- what another process left ---- */

static bool
slot_fits(const struct rsb_journal_slot *slot, size_t index)
{
	if (slot->fifo == 0)
		return slot->commit == 0;
	if (slot->fifo % RSB_JOURNAL_SLOTS != index)
		return false;
	return slot->commit == 0 || (slot->size <= RSB_JOURNAL_REPLY_MAX &&
					    slot->commit == rsb_journal_slot_digest(slot));
}

static bool
part_fits(const struct rsb_journal_part_head *part, const struct rsb_journal_slot *slots)
{
	uint64_t begun = 0;

	if (part->state == 0)
		return true;
	if (part->state != digest(0, &part->owner, sizeof(part->owner)) ||
		part->owner.client_size > RSB_JOURNAL_ID_MAX ||
		part->owner.session_size > RSB_JOURNAL_ID_MAX ||
		!rsb_journal_count(part->incarnation))
		return false;
	for (size_t i = 0; i < RSB_JOURNAL_SLOTS; i++) {
		if (!slot_fits(&slots[i], i))
			return false;
		begun = rsb_max(begun, slots[i].fifo);
	}
	/* The one that the process was about to begin when it was killed may be ahead. */
	return part->begun == begun ||
	       (part->begun < begun && slots[begun % RSB_JOURNAL_SLOTS].commit == 0);
}

static bool
sandbox_fits(const struct rsb_journal_head *head)
{
	/* Without parts it may be that it was about to be stored. */
	if (head->sandbox_state == 0) {
		for (size_t i = 0; head->sandbox_size && i < RSB_JOURNAL_PARTS; i++)
			if (head->parts[i].state)
				return false;
		return true;
	}
	return head->sandbox_size <= RSB_JOURNAL_SANDBOX_MAX &&
	       head->sandbox_state == digest(0, head->sandbox, head->sandbox_size);
}

static bool
fits(const struct rsb_journal_file *file, const struct rsb_journal_site *site)
{
	if (memcmp(&file->head.site, site, sizeof(*site)) != 0 || !sandbox_fits(&file->head))
		return false;
	for (size_t i = 0; i < RSB_JOURNAL_PARTS; i++)
		if (!part_fits(&file->head.parts[i], file->slots[i]))
			return false;
	return true;
}

static void
take_over(struct rsb_journal_part_head *part, const struct rsb_journal_slot *slots)
{
	for (size_t i = 0; part->state && i < RSB_JOURNAL_SLOTS; i++)
		part->begun = rsb_max(part->begun, slots[i].fifo);
}

/* ---- the file ---- */

static int
site_of(const char *boot_id, int root_fd, struct rsb_journal_site *ret_site)
{
	struct statx st;

	*ret_site = (struct rsb_journal_site){ .magic = MAGIC, .size = RSB_JOURNAL_SIZE };
	if (!boot_id[0] || strlen(boot_id) >= RSB_JOURNAL_BOOT_ID_MAX)
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
rsb_journal_file_allocate(int fd, size_t part)
{
	size_t size = sizeof(((struct rsb_journal_file *)NULL)->slots[0]);

	return rsb_ownfile_allocate(fd, RSB_JOURNAL_HEAD_SIZE + part * size, size);
}

/* The head, one part for the session that most often is the only one, and those that are in use. */
static int
allocate(const struct rsb_journal_file *file, int fd)
{
	int r = rsb_ownfile_allocate(fd, 0, RSB_JOURNAL_HEAD_SIZE);

	for (size_t i = 0; r == 0 && i < RSB_JOURNAL_PARTS; i++)
		if (i == 0 || file->head.parts[i].state)
			r = rsb_journal_file_allocate(fd, i);
	return r;
}

static int
believe(struct rsb_journal_file *file, int fd, const struct rsb_journal_site *site)
{
	static const struct rsb_journal_site nowhere;
	int r = allocate(file, fd);

	if (r < 0)
		return r;
	if (!fits(file, site)) {
		if (memcmp(&file->head.site, &nowhere, sizeof(nowhere)) != 0)
			rsb_info("the journal of another place, or damaged: it begins anew");
		r = rsb_ownfile_clear(fd, RSB_JOURNAL_SIZE);
		if (r == 0)
			r = allocate(file, fd);
		if (r < 0)
			return r;
		file->head.site = *site;
	}
	for (size_t i = 0; i < RSB_JOURNAL_PARTS; i++)
		take_over(&file->head.parts[i], file->slots[i]);
	return 0;
}

void
rsb_journal_file_close(struct rsb_journal_file *file, int *fd)
{
	if (file)
		(void)munmap(file, RSB_JOURNAL_SIZE);
	rsb_cleanup_close(fd);
}

int
rsb_journal_file_open(const char *path, const char *boot_id, int root_fd,
	struct rsb_journal_file **ret_file, int *ret_fd)
{
	struct rsb_journal_site site;
	void *map;
	int fd, r;

	r = site_of(boot_id, root_fd, &site);
	if (r < 0)
		return r;
	fd = rsb_ownfile_open(path, RSB_JOURNAL_SIZE);
	if (fd < 0)
		return fd;
	map = mmap(NULL, RSB_JOURNAL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		r = -errno;
		rsb_cleanup_close(&fd);
		return r;
	}
	(void)madvise(map, RSB_JOURNAL_SIZE, MADV_DONTFORK); /* they have no use for it */
	r = believe(map, fd, &site);
	if (r < 0) {
		rsb_journal_file_close(map, &fd);
		return r;
	}
	*ret_file = map;
	*ret_fd = fd;
	return 0;
}
