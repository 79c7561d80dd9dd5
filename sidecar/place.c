/* SPDX-License-Identifier: MIT */
#include "sidecar/place.h"

#include <unistd.h>

#include "sidecar/attr.h"
#include "sidecar/resolve.h"

int
rsb_place_init(struct rsb_place *place, struct rsb_nodes *nodes, const struct rsb_node *dir,
	struct rsb_bytes name)
{
	*place = (struct rsb_place){ .dir_fd = -1, .dir = dir->id };
	int r = rsb_root_name(name, place->name);
	if (r < 0)
		return r;
	r = rsb_resolve(nodes, dir);
	if (r < 0)
		return r;
	place->dir_fd = r;
	return 0;
}

void
rsb_place_done(struct rsb_place *place)
{
	if (place->dir_fd >= 0)
		(void)close(place->dir_fd);
	place->dir_fd = -1;
}

int
rsb_place_child(const struct rsb_place *place)
{
	return rsb_root_child(place->dir_fd, place->name);
}

int
rsb_place_attr(const struct rsb_place *place, struct rsb_nodes *nodes, struct rsb_attr *ret_attr)
{
	return rsb_nodes_attr(nodes, place->dir, place->dir_fd, ret_attr);
}

int
rsb_place_enter(const struct rsb_place *place, struct rsb_nodes *nodes, uint64_t id, int *fd,
	struct rsb_entry_rep *rep)
{
	struct rsb_ident ident;
	struct statx st;
	int r = rsb_root_ident(rsb_nodes_root(nodes), *fd, "", &ident, &st);

	if (r < 0)
		return r;
	const struct rsb_binding binding = {
		.ident = &ident,
		.parent = place->dir,
		.name = place->name,
		.id = id,
		.dir_fd = fd,
	};
	r = rsb_nodes_bind(nodes, &binding, &rep->id);
	if (r < 0)
		return r;
	rsb_attr_of(&st, &rep->attr);
	return 0;
}
