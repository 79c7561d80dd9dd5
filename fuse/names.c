/* SPDX-License-Identifier: MIT */
#include "fuse/names.h"

#include <errno.h>
#include <string.h>

#include "util/mix.h"

struct entry {
	struct entry *next;   /* of the same bucket */
	struct rsb_list link; /* of rsb_names.age, or of rsb_names.lent */
	struct rsb_inode *parent;
	struct rsb_inode *inode; /* NULL: absent */
	uint64_t lent_ns;        /* when the kernel was given it last */
	bool is_lent;
	bool hidden; /* only remembered because it is lent */
	uint8_t size;
	char name[];
};

struct rsb_names {
	struct entry **buckets;
	size_t n_bucket; /* a power of two */
	size_t n;
	size_t max;
	struct rsb_list age;  /* those that may give way, oldest first */
	struct rsb_list lent; /* the others */
};

int
rsb_names_new(size_t max, struct rsb_names **ret_names)
{
	RSB_CLEANUP(rsb_names_freep) struct rsb_names *names = rsb_new(struct rsb_names);

	if (!names)
		return -ENOMEM;
	rsb_list_init(&names->age);
	rsb_list_init(&names->lent);
	names->max = max;
	names->n_bucket = 64;
	while (names->n_bucket < max)
		names->n_bucket *= 2;
	names->buckets = rsb_new_array(struct entry *, names->n_bucket);
	if (!names->buckets)
		return -ENOMEM;
	*ret_names = rsb_steal(&names);
	return 0;
}

static struct entry **
bucket_of(const struct rsb_names *names, const struct rsb_inode *parent, struct rsb_bytes name)
{
	const uint64_t h = rsb_mix_u64(rsb_mix_bytes(RSB_MIX_BASIS ^ parent->nodeid, name));

	return &names->buckets[h & (names->n_bucket - 1)];
}

static struct rsb_bytes
name_of(const struct entry *entry)
{
	return (struct rsb_bytes){ .data = (const uint8_t *)entry->name, .size = entry->size };
}

static struct entry *
find(const struct rsb_names *names, const struct rsb_inode *parent, struct rsb_bytes name)
{
	struct entry *entry = *bucket_of(names, parent, name);

	while (entry && (entry->parent != parent || entry->size != name.size ||
				memcmp(entry->name, name.data, name.size) != 0))
		entry = entry->next;
	return entry;
}

static void
set_inode(struct entry *entry, struct rsb_inode *inode)
{
	struct rsb_inode *old = entry->inode;

	entry->inode = inode ? rsb_inode_ref(inode) : NULL;
	rsb_inode_unref(old);
}

static void
remove_entry(struct rsb_names *names, struct entry *entry)
{
	struct entry **pp = bucket_of(names, entry->parent, name_of(entry));

	while (*pp != entry)
		pp = &(*pp)->next;
	*pp = entry->next;
	rsb_list_remove(&entry->link);
	names->n--;
	/* What is not remembered any more may be absent or not. */
	entry->parent->listed_gen = 0;
	set_inode(entry, NULL);
	rsb_inode_unref(entry->parent);
	free(entry);
}

void
rsb_names_free(struct rsb_names *names)
{
	if (!names)
		return;
	while (!rsb_list_empty(&names->lent))
		remove_entry(names, rsb_list_entry(names->lent.next, struct entry, link));
	while (!rsb_list_empty(&names->age))
		remove_entry(names, rsb_list_entry(names->age.next, struct entry, link));
	free(names->buckets);
	free(names);
}

int
rsb_names_get(const struct rsb_names *names, const struct rsb_inode *parent, struct rsb_bytes name,
	struct rsb_inode **ret_inode)
{
	const struct entry *entry = find(names, parent, name);

	if (!entry || entry->hidden)
		return -ENOENT;
	if (!entry->inode)
		return 0;
	*ret_inode = entry->inode;
	return 1;
}

/* Makes room for one more by dropping the oldest that the kernel does not hold. */
static int
make_room(struct rsb_names *names)
{
	if (names->n < names->max)
		return 0;
	if (rsb_list_empty(&names->age))
		return -ENOSPC;
	remove_entry(names, rsb_list_entry(names->age.next, struct entry, link));
	return 0;
}

void
rsb_names_put(struct rsb_names *names, struct rsb_inode *parent, struct rsb_bytes name,
	struct rsb_inode *inode)
{
	struct entry *entry = find(names, parent, name);
	struct entry **bucket;

	if (entry) {
		entry->hidden = false;
		set_inode(entry, inode);
		if (!entry->is_lent) {
			rsb_list_remove(&entry->link);
			rsb_list_append(&names->age, &entry->link);
		}
		return;
	}
	entry = NULL;
	if (name.size <= RSB_NAME_MAX && make_room(names) == 0)
		entry = calloc(1, sizeof(*entry) + name.size + 1);
	if (!entry) {
		parent->listed_gen = 0;
		return;
	}
	memcpy(entry->name, name.data, name.size);
	entry->size = (uint8_t)name.size;
	entry->parent = rsb_inode_ref(parent);
	set_inode(entry, inode);
	bucket = bucket_of(names, parent, name);
	entry->next = *bucket;
	*bucket = entry;
	rsb_list_append(&names->age, &entry->link);
	names->n++;
}

static void
hide(struct rsb_names *names, struct entry *entry)
{
	if (!entry->is_lent) {
		remove_entry(names, entry);
		return;
	}
	entry->hidden = true;
	entry->parent->listed_gen = 0;
	set_inode(entry, NULL);
}

void
rsb_names_drop(struct rsb_names *names, const struct rsb_inode *parent, struct rsb_bytes name)
{
	struct entry *entry = find(names, parent, name);

	if (entry)
		hide(names, entry);
}

void
rsb_names_clear(struct rsb_names *names)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	rsb_list_for_each_safe (pos, tmp, &names->age)
		hide(names, rsb_list_entry(pos, struct entry, link));
	rsb_list_for_each_safe (pos, tmp, &names->lent)
		hide(names, rsb_list_entry(pos, struct entry, link));
}

int
rsb_names_lend(struct rsb_names *names, const struct rsb_inode *parent, struct rsb_bytes name,
	uint64_t now_ns)
{
	struct entry *entry = find(names, parent, name);

	if (!entry)
		return -ENOENT;
	entry->lent_ns = now_ns;
	if (!entry->is_lent) {
		entry->is_lent = true;
		rsb_list_remove(&entry->link);
		rsb_list_append(&names->lent, &entry->link);
	}
	return 0;
}

static void
take_back(struct rsb_names *names, struct entry *entry)
{
	entry->is_lent = false;
	rsb_list_remove(&entry->link);
	rsb_list_append(&names->age, &entry->link);
	if (entry->hidden)
		remove_entry(names, entry);
}

bool
rsb_names_is_lent(
	const struct rsb_names *names, const struct rsb_inode *parent, struct rsb_bytes name)
{
	const struct entry *entry = find(names, parent, name);

	return entry && entry->is_lent;
}

void
rsb_names_take_back(struct rsb_names *names, const struct rsb_inode *parent, struct rsb_bytes name)
{
	struct entry *entry = find(names, parent, name);

	if (entry && entry->is_lent)
		take_back(names, entry);
}

void
rsb_names_reclaim(struct rsb_names *names, uint64_t until_ns, rsb_names_fn fn, void *arg)
{
	struct rsb_list *pos;
	struct rsb_list *tmp;

	rsb_list_for_each_safe (pos, tmp, &names->lent) {
		struct entry *entry = rsb_list_entry(pos, struct entry, link);

		fn(arg, entry->parent->nodeid, name_of(entry));
		if (entry->lent_ns <= until_ns)
			take_back(names, entry);
	}
}

size_t
rsb_names_count(const struct rsb_names *names)
{
	return names->n;
}
