/* SPDX-License-Identifier: MIT */
#include "sidecar/adopt.h"

#include <errno.h>
#include <unistd.h>

#include "util/cleanup.h"

static int
go_to(struct rsb_place *place, struct rsb_nodes *nodes, const struct rsb_adopt_one *one)
{
	const struct rsb_node parent = { .id = one->parent };

	if (place->dir_fd >= 0 && place->dir == one->parent)
		return rsb_root_name(one->name, place->name);
	rsb_place_done(place);
	return rsb_place_init(place, nodes, &parent, one->name);
}

static bool
is_expected(const struct rsb_adopt_one *one, const struct rsb_ident *found)
{
	return found->ino == one->node.ino && found->type == one->type &&
	       found->btime_sec == one->node.btime.sec && found->btime_nsec == one->node.btime.nsec;
}

static int
look(struct rsb_nodes *nodes, struct rsb_place *place, const struct rsb_adopt_one *one)
{
	struct rsb_ident found;
	uint64_t id;
	int r;

	r = go_to(place, nodes, one);
	if (r < 0)
		return r;
	rsb_autoclose int fd = rsb_place_child(place);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return -ESTALE;
	if (fd < 0)
		return fd;
	r = rsb_root_ident(rsb_nodes_root(nodes), fd, "", &found, NULL);
	if (r < 0)
		return r;
	if (!is_expected(one, &found))
		return -ESTALE;
	const struct rsb_binding binding = {
		.ident = &found,
		.parent = one->parent,
		.name = place->name,
		.id = one->node.id,
		.n_given = one->n_given,
		.dir_fd = &fd,
	};
	r = rsb_nodes_bind(nodes, &binding, &id);
	if (r < 0 || id == one->node.id)
		return r;
	/* Two ids for one inode: the host has made that up, and what it counts is its own loss. */
	return -EINVAL;
}

int
rsb_adopt_node(struct rsb_nodes *nodes, struct rsb_place *place, const struct rsb_adopt_one *one)
{
	int r;

	if (one->node.id == RSB_NODE_ROOT || one->node.ino == 0)
		return -EINVAL;
	r = look(nodes, place, one);
	if (r == -ESTALE) {
		r = rsb_nodes_await(nodes, one);
		return r < 0 ? r : -ESTALE;
	}
	return r;
}
