/* SPDX-License-Identifier: MIT */
#include "sidecar/resolve.h"

#include <errno.h>
#include <fcntl.h>

#include "util/cleanup.h"

/* The name may lead nowhere or elsewhere by now; other errors say nothing about the node. */
static bool
says_moved(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -ESTALE;
}

static int
by_name(const struct rsb_root *root, int dir_fd, const struct rsb_step *step)
{
	struct rsb_ident found;

	if (dir_fd < 0 || !step->name[0])
		return -ESTALE;
	rsb_autoclose int fd = rsb_root_child(dir_fd, step->name);
	if (fd < 0)
		return fd;
	int r = rsb_root_ident(root, fd, "", &found, NULL);
	if (r < 0)
		return r;
	return rsb_ident_same(&step->ident, &found) ? rsb_steal_fd(&fd) : -ESTALE;
}

int
rsb_resolve(struct rsb_nodes *nodes, const struct rsb_node *node)
{
	const struct rsb_root *root = rsb_nodes_root(nodes);
	RSB_CLEANUP(rsb_trail_done) struct rsb_trail trail = { .fd = -1 };
	int r = rsb_nodes_trail(nodes, node, &trail);

	if (r < 0)
		return r;
	while (trail.n_step) {
		const struct rsb_step *step = &trail.steps[--trail.n_step];
		rsb_autoclose int fd = by_name(root, trail.fd, step);

		if (fd < 0 && says_moved(fd))
			fd = rsb_root_by_ident(root, &step->ident);
		if (fd < 0 && !says_moved(fd))
			return fd;
		/* A step that cannot be found: the next one may be reached by its handle. */
		if (trail.fd >= 0)
			(void)close(trail.fd);
		trail.fd = fd < 0 ? -1 : rsb_steal_fd(&fd);
		if (trail.fd < 0 || step->ident.type != S_IFDIR)
			continue;

		rsb_autoclose int copy = fcntl(trail.fd, F_DUPFD_CLOEXEC, 0);
		rsb_nodes_keep(nodes, &step->ident, &copy);
	}
	return trail.fd < 0 ? -ESTALE : rsb_steal_fd(&trail.fd);
}
