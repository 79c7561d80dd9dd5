/* SPDX-License-Identifier: MIT */
#include "fuse/gitplaces.h"

#include <stdlib.h>
#include <string.h>

bool
rsb_gitplaces_at(const struct rsb_inode *inode, size_t i, const struct rsb_inode **ret_dir,
	const char **ret_name)
{
	const struct rsb_gitplaces *places = inode->git_places;

	if (i > (places ? places->n : 0))
		return false;
	*ret_dir = NULL;
	*ret_name = i ? places->items[i - 1].name : inode->name;
	if (*ret_name)
		*ret_dir = rsb_inode_by_nodeid(
			inode->set, i ? places->items[i - 1].parent : inode->parent);
	return true;
}

static bool
is_kept(const struct rsb_gitplaces *places, uint64_t parent, const char *name)
{
	for (size_t i = 0; i < places->n; i++) {
		if (places->items[i].parent == parent && strcmp(places->items[i].name, name) == 0)
			return true;
	}
	return false;
}

bool
rsb_gitplaces_keep(struct rsb_inode *inode)
{
	struct rsb_gitplaces *places = inode->git_places;
	char *name;

	if (places && is_kept(places, inode->parent, inode->name))
		return true;
	if (!places)
		places = inode->git_places = rsb_new(struct rsb_gitplaces);
	name = places && places->n < RSB_GITPLACES_MAX ? strdup(inode->name) : NULL;
	if (!name)
		return false;
	places->items[places->n].parent = inode->parent;
	places->items[places->n].name = name;
	places->n++;
	return true;
}

void
rsb_gitplaces_free(struct rsb_gitplaces *places)
{
	if (!places)
		return;
	for (size_t i = 0; i < places->n; i++)
		free(places->items[i].name);
	free(places);
}
