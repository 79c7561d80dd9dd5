/* SPDX-License-Identifier: MIT */
#include "fuse/alias.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct rsb_aliases {
	size_t n; /* the oldest first */
	struct {
		uint64_t parent; /* nodeid */
		char *name;
	} items[RSB_ALIASES_MAX];
};

static void
remove_at(struct rsb_aliases *aliases, size_t i)
{
	free(aliases->items[i].name);
	aliases->n--;
	memmove(&aliases->items[i], &aliases->items[i + 1],
		(aliases->n - i) * sizeof(aliases->items[0]));
}

static void
forget(struct rsb_aliases *aliases, uint64_t parent, struct rsb_bytes name)
{
	for (size_t i = 0; aliases && i < aliases->n; i++) {
		const char *known = aliases->items[i].name;

		if (aliases->items[i].parent != parent || strlen(known) != name.size ||
			memcmp(known, name.data, name.size) != 0)
			continue;
		remove_at(aliases, i);
		return;
	}
}

void
rsb_alias_keep(struct rsb_inode *inode)
{
	struct rsb_aliases *aliases = inode->aliases;
	char *name;

	/* What is not open is looked up when it is asked for again, by whatever name. */
	if (!inode->name || S_ISDIR(inode->attr.mode) || (inode->attr.nlink < 2 && !inode->n_open))
		return;
	if (!aliases)
		aliases = inode->aliases = rsb_new(struct rsb_aliases);
	name = aliases ? strdup(inode->name) : NULL;
	if (!name)
		return;
	forget(aliases, inode->parent, rsb_bytes_str(name));
	if (aliases->n == RSB_ALIASES_MAX)
		remove_at(aliases, 0);
	aliases->items[aliases->n].parent = inode->parent;
	aliases->items[aliases->n].name = name;
	aliases->n++;
}

void
rsb_alias_lose(struct rsb_inode *inode, const struct rsb_inode *dir, struct rsb_bytes name)
{
	struct rsb_aliases *aliases = inode->aliases;
	struct rsb_inode *parent;
	const char *other;

	if (!aliases)
		return;
	forget(aliases, dir->nodeid, name);
	if (!rsb_inode_is_hinted(inode, dir, name) || aliases->n == 0)
		return;
	other = rsb_alias_get(inode, aliases->n - 1, &parent);
	if (other && parent)
		rsb_inode_hint(inode, parent, rsb_bytes_str(other));
	forget(aliases, dir->nodeid, name);
	forget(aliases, inode->parent, rsb_bytes_str(inode->name));
}

const char *
rsb_alias_get(const struct rsb_inode *inode, size_t i, struct rsb_inode **ret_parent)
{
	const struct rsb_aliases *aliases = inode->aliases;

	if (!aliases || i >= aliases->n)
		return NULL;
	*ret_parent = rsb_inode_by_nodeid(inode->set, aliases->items[i].parent);
	return aliases->items[i].name;
}

void
rsb_aliases_free(struct rsb_aliases *aliases)
{
	while (aliases && aliases->n)
		remove_at(aliases, aliases->n - 1);
	free(aliases);
}
