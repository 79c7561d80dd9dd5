/* SPDX-License-Identifier: MIT */
#include "fuse/dirsnap.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "util/mix.h"

struct entry {
	uint64_t ino;
	size_t name; /* offset in names */
	uint16_t size;
	uint8_t type;
};

struct rsb_dirsnap {
	struct rsb_dirsnaps *all;
	size_t charged; /* of all->size */
	size_t n_page;
	struct entry *entries;
	size_t n;
	size_t cap;
	struct rsb_buf names;
	int state;
	uint32_t *known; /* rsb_dirsnap_again(): hashed, index + 1 of those from before; or NULL */
	size_t n_known;  /* a power of 2 */
};

int
rsb_dirsnap_new(
	struct rsb_dirsnaps *all, uint64_t ino, uint64_t parent_ino, struct rsb_dirsnap **ret_snap)
{
	RSB_CLEANUP(rsb_dirsnap_freep) struct rsb_dirsnap *snap = rsb_new(struct rsb_dirsnap);
	struct rsb_dirsnap_entry dot = {
		.name = rsb_bytes_str("."),
		.ino = ino,
		.type = DT_DIR,
	};
	int r;

	if (!snap)
		return -ENOMEM;
	snap->all = all;
	rsb_buf_init(&snap->names, (size_t)RSB_DIRSNAP_MAX * 256);
	r = rsb_dirsnap_add(snap, &dot);
	if (r < 0)
		return r;
	dot.name = rsb_bytes_str("..");
	dot.ino = parent_ino;
	r = rsb_dirsnap_add(snap, &dot);
	if (r < 0)
		return r;
	*ret_snap = rsb_steal(&snap);
	return 0;
}

static void
empty(struct rsb_dirsnap *snap)
{
	free(rsb_steal(&snap->known));
	free(rsb_steal(&snap->entries));
	rsb_buf_done(&snap->names);
	snap->n = 0;
	snap->cap = 0;
	snap->all->size -= snap->charged;
	snap->charged = 0;
}

void
rsb_dirsnap_free(struct rsb_dirsnap *snap)
{
	if (!snap)
		return;
	empty(snap);
	free(snap);
}

/* Where name is, or would go. */
static uint32_t *
find_known(const struct rsb_dirsnap *snap, struct rsb_bytes name)
{
	const uint64_t hash = rsb_mix_bytes(RSB_MIX_BASIS, name);
	size_t i;

	for (i = hash & (snap->n_known - 1); snap->known[i]; i = (i + 1) & (snap->n_known - 1)) {
		const struct entry *entry = &snap->entries[snap->known[i] - 1];

		if (entry->size == name.size &&
			memcmp(snap->names.data + entry->name, name.data, name.size) == 0)
			break;
	}
	return &snap->known[i];
}

int
rsb_dirsnap_again(struct rsb_dirsnap *snap)
{
	size_t n = 64;

	while (n < 2 * snap->n)
		n *= 2;
	free(snap->known);
	snap->known = rsb_new_array(uint32_t, n);
	if (!snap->known)
		return -ENOMEM;
	snap->n_known = n;
	snap->n_page = 0;
	for (uint32_t i = 0; i < snap->n; i++) {
		const struct entry *entry = &snap->entries[i];

		*find_known(snap, (struct rsb_bytes){ .data = snap->names.data + entry->name,
					  .size = entry->size }) = i + 1;
	}
	return 0;
}

int
rsb_dirsnap_add(struct rsb_dirsnap *snap, const struct rsb_dirsnap_entry *entry)
{
	size_t cost = sizeof(struct entry) + entry->name.size;
	int r;

	if (snap->known && *find_known(snap, entry->name))
		return 0;
	if (snap->n >= RSB_DIRSNAP_MAX)
		return -ENOSPC;
	if (snap->all->max - snap->all->size < cost)
		return -ENOMEM;
	if (snap->n == snap->cap) {
		size_t cap = snap->cap ? snap->cap * 2 : 32;
		struct entry *entries = reallocarray(snap->entries, cap, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		snap->entries = entries;
		snap->cap = cap;
	}
	snap->entries[snap->n] = (struct entry){
		.ino = entry->ino,
		.name = snap->names.size,
		.size = (uint16_t)entry->name.size,
		.type = (uint8_t)entry->type,
	};
	r = rsb_buf_append(&snap->names, entry->name.data, entry->name.size);
	if (r < 0)
		return r;
	snap->n++;
	snap->charged += cost;
	snap->all->size += cost;
	return 0;
}

int
rsb_dirsnap_page(struct rsb_dirsnap *snap)
{
	snap->n_page++;
	return snap->n_page > RSB_DIRSNAP_PAGES_SPARE + snap->n / RSB_DIRSNAP_PAGE_LEAST ? -EIO : 0;
}

void
rsb_dirsnap_finish(struct rsb_dirsnap *snap, int r)
{
	snap->state = r < 0 ? r : 1;
	free(rsb_steal(&snap->known));
	if (r < 0)
		empty(snap);
}

int
rsb_dirsnap_state(const struct rsb_dirsnap *snap)
{
	return snap->state;
}

size_t
rsb_dirsnap_count(const struct rsb_dirsnap *snap)
{
	return snap->n;
}

int
rsb_dirsnap_get(
	const struct rsb_dirsnap *snap, uint64_t offset, struct rsb_dirsnap_entry *ret_entry)
{
	const struct entry *entry;

	if (offset >= snap->n)
		return 0;
	entry = &snap->entries[offset];
	ret_entry->name.data = snap->names.data + entry->name;
	ret_entry->name.size = entry->size;
	ret_entry->ino = entry->ino;
	ret_entry->type = entry->type;
	return 1;
}
