/* SPDX-License-Identifier: MIT */
#include "fuse/alias.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuse/seen.h"

struct rsb_aliases {
	struct rsb_shared *shared;
	struct rsb_namestore *names;
	uint32_t first_free; /* index; 0: none */
};

int
rsb_aliases_new(
	struct rsb_shared *shared, struct rsb_namestore *names, struct rsb_aliases **ret_aliases)
{
	struct rsb_aliases *aliases = rsb_new(struct rsb_aliases);

	if (!aliases)
		return -ENOMEM;
	aliases->shared = shared;
	aliases->names = names;
	*ret_aliases = aliases;
	return 0;
}

void
rsb_aliases_free(struct rsb_aliases *aliases)
{
	free(aliases);
}

static struct rsb_aliases *
all_of(const struct rsb_inode *inode)
{
	return rsb_inodes_aliases(inode->set);
}

/* ---- entries ---- */

/* 0: there is none. */
static uint32_t
take(struct rsb_aliases *aliases)
{
	struct rsb_shared *shared = aliases->shared;
	uint32_t i = aliases->first_free;

	if (i)
		aliases->first_free = shared->aliases[i].next;
	else if (shared->head.n_alias < RSB_SHARED_ALIASES_MAX)
		i = ++shared->head.n_alias;
	return i;
}

static void
give(struct rsb_aliases *aliases, uint32_t i)
{
	aliases->shared->aliases[i].next = aliases->first_free;
	aliases->first_free = i;
}

/* link: where its number stands. */
static void
drop(struct rsb_aliases *aliases, uint32_t *link)
{
	uint32_t i = *link;
	struct rsb_shared_alias *alias = &aliases->shared->aliases[i];

	*link = alias->next;
	rsb_shared_publish(&alias->nodeid, (uint64_t)0);
	rsb_namestore_drop(aliases->names, alias->name);
	give(aliases, i);
}

static void
push(struct rsb_aliases *aliases, struct rsb_inode *inode, uint32_t i)
{
	aliases->shared->aliases[i].next = inode->first_alias;
	inode->first_alias = i;
}

void
rsb_aliases_restore(struct rsb_aliases *aliases, const struct rsb_inodes *inodes)
{
	struct rsb_shared *shared = aliases->shared;

	for (uint32_t i = 1; i <= shared->head.n_alias; i++) {
		struct rsb_shared_alias *alias = &shared->aliases[i];
		struct rsb_inode *inode = rsb_inode_by_nodeid(inodes, alias->nodeid);
		uint32_t unlinked = i;

		if (alias->nodeid && inode && rsb_namestore_get(aliases->names, alias->name)) {
			push(aliases, inode, i);
		} else if (alias->nodeid) {
			alias->next = 0;
			drop(aliases, &unlinked);
		} else {
			give(aliases, i);
		}
	}
}

/* ---- names of a node ---- */

static bool
is_name(const char *known, struct rsb_bytes name)
{
	return known && strlen(known) == name.size && memcmp(known, name.data, name.size) == 0;
}

static bool
is_seen(const struct rsb_inode *inode, const struct rsb_inode *dir, struct rsb_bytes name)
{
	struct rsb_inode *parent;

	return is_name(rsb_seen_last(inode, &parent), name) && parent == dir;
}

static void
forget(struct rsb_inode *inode, const struct rsb_inode *parent, struct rsb_bytes name)
{
	struct rsb_aliases *aliases = all_of(inode);
	uint32_t *link = &inode->first_alias;

	while (*link) {
		const struct rsb_shared_alias *alias = &aliases->shared->aliases[*link];

		if (alias->parent == parent->nodeid &&
			is_name(rsb_namestore_get(aliases->names, alias->name), name)) {
			drop(aliases, link);
			return;
		}
		link = &aliases->shared->aliases[*link].next;
	}
}

/* The oldest give way. */
static void
make_room(struct rsb_inode *inode)
{
	struct rsb_aliases *aliases = all_of(inode);
	uint32_t *link = &inode->first_alias;

	for (unsigned int n = 1; *link && n < RSB_ALIASES_MAX; n++)
		link = &aliases->shared->aliases[*link].next;
	while (*link)
		drop(aliases, link);
}

static void
add(struct rsb_inode *inode, const struct rsb_inode *parent, const char *name)
{
	struct rsb_aliases *aliases = all_of(inode);
	struct rsb_shared_alias *alias;
	uint64_t word;
	uint32_t i;

	/* Without room it is known by one name less. */
	if (rsb_namestore_put(aliases->names, rsb_bytes_str(name), &word) < 0)
		return;
	i = take(aliases);
	if (!i) {
		rsb_namestore_drop(aliases->names, word);
		return;
	}
	alias = &aliases->shared->aliases[i];
	alias->parent = parent->nodeid;
	alias->name = word;
	rsb_shared_publish(&alias->nodeid, inode->nodeid);
	push(aliases, inode, i);
}

void
rsb_alias_keep(struct rsb_inode *inode, const struct rsb_inode *parent, struct rsb_bytes name)
{
	struct rsb_inode *dir;
	const char *seen = rsb_seen_last(inode, &dir);

	/* What is not open is looked up when it is asked for again, by whatever name. */
	if (!seen || S_ISDIR(inode->attr.mode) || (inode->attr.nlink == 1 && !inode->n_open) ||
		is_seen(inode, parent, name))
		return;
	forget(inode, dir, rsb_bytes_str(seen));
	make_room(inode);
	add(inode, dir, seen);
}

void
rsb_alias_lose(struct rsb_inode *inode, const struct rsb_inode *dir, struct rsb_bytes name)
{
	struct rsb_inode *parent = NULL;
	char other[RSB_NAME_MAX + 1];
	const char *known;

	forget(inode, dir, name);
	if (!is_seen(inode, dir, name))
		return;
	for (size_t i = 0; (known = rsb_alias_get(inode, i, &parent)) && !parent; i++)
		continue;
	if (!known)
		return;
	strcpy(other, known);
	rsb_seen_hint(inode, parent, rsb_bytes_str(other));
	forget(inode, dir, name);
	forget(inode, parent, rsb_bytes_str(other));
}

void
rsb_alias_lose_all(struct rsb_inode *inode)
{
	while (inode->first_alias)
		drop(all_of(inode), &inode->first_alias);
}

const char *
rsb_alias_get(const struct rsb_inode *inode, size_t i, struct rsb_inode **ret_parent)
{
	const struct rsb_aliases *aliases = all_of(inode);
	const struct rsb_shared_alias *alias;
	uint32_t at = inode->first_alias;

	while (at && i-- > 0)
		at = aliases->shared->aliases[at].next;
	if (!at)
		return NULL;
	alias = &aliases->shared->aliases[at];
	*ret_parent = rsb_inode_by_nodeid(inode->set, alias->parent);
	return rsb_namestore_get(aliases->names, alias->name);
}
