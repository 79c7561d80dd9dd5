/* SPDX-License-Identifier: MIT */
#ifndef RSB_NODE_H
#define RSB_NODE_H

/*
 * The nodes that a session was told of: by the id that the host chose, and by what they are (struct
 * rsb_ident), so that all names of an inode lead to one id. A node remembers
 *
 *  - how often it was given, less what was forgotten;
 *  - the name under which it was seen last, below the node of that directory. It is a hint: the
 *    sandbox renames without telling us, so what a hint leads to is compared with the ident. A
 *    file may have more names, which the host knows as well: they are kept, up to a number, for
 *    when the hint is removed;
 *  - for directories an O_PATH descriptor, the least lately used of which are closed, and for files
 *    one while the host has them open. A node with a descriptor is found wherever it was moved, and
 *    as long as we hold it (dev, ino) means this inode alone: then a birth time that changed
 *    (overlayfs, when the file is copied to the upper layer) is taken over instead of making
 *    another node.
 *
 * An entry outlives its last reference while entries below it remain, without an id, so that their
 * hints go on leading somewhere. Hints never form a ring.
 *
 * Any thread. One lock inside, never held over a call that can block; ids of the host that make no
 * sense are refused with an errno.
 */

#include <stdbool.h>

#include "proto/op.h"
#include "sidecar/root.h"
#include "sidecar/sess.h"

#define RSB_NODE_ROOT UINT64_C(1)

/* config is borrowed. */
rsb_nodiscard int rsb_nodes_new(
	const struct rsb_sidecar_config *config, struct rsb_nodes **ret_nodes);
void rsb_nodes_free(struct rsb_nodes *nodes); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_nodes *, rsb_nodes_free)

const struct rsb_root *rsb_nodes_root(const struct rsb_nodes *nodes);

/* Whether id can name a new node: -EINVAL if it is 0 or taken, -ENFILE if there are too many. */
rsb_nodiscard int rsb_nodes_offer(struct rsb_nodes *nodes, uint64_t id);

struct rsb_binding {
	const struct rsb_ident *ident;
	uint64_t parent;  /* where it was seen */
	const char *name; /* the same */
	uint64_t id;      /* what to call it, if it has no id yet */
	uint64_t n_given; /* how often that is at least; 0: once more */
	int *dir_fd;      /* may be NULL; an O_PATH descriptor, taken (set to -1) if it is useful */
};

/* Errors as rsb_nodes_offer(), and -ENOMEM. */
rsb_nodiscard int rsb_nodes_bind(
	struct rsb_nodes *nodes, const struct rsb_binding *binding, uint64_t *ret_id);
/*
 * A node of before that is not where it was, known by inode number and birth time alone: whoever
 * comes across it finds it, or rather names it. -ESTALE: there is no birth time; else as bind.
 */
rsb_nodiscard int rsb_nodes_await(struct rsb_nodes *nodes, const struct rsb_adopt_one *one);
/* Unknown ids and counts that are too large do no harm. */
void rsb_nodes_forget(struct rsb_nodes *nodes, uint64_t id, uint64_t n);
/* 0: nobody was told of it. */
uint64_t rsb_nodes_find(struct rsb_nodes *nodes, const struct rsb_ident *ident);

/* We gave it this name, or saw it there. */
void rsb_nodes_named(
	struct rsb_nodes *nodes, const struct rsb_ident *ident, uint64_t parent, const char *name);
/* We took this name from it. gone: it was the last one, and the inode number is free. */
void rsb_nodes_unnamed(struct rsb_nodes *nodes, const struct rsb_ident *ident, uint64_t parent,
	const char *name, bool gone);

/*
 * One open file more: the node keeps fd (O_PATH, taken always) until the last unpin. -ESTALE: no
 * such id.
 */
rsb_nodiscard int rsb_nodes_pin(struct rsb_nodes *nodes, uint64_t id, int fd);
void rsb_nodes_unpin(struct rsb_nodes *nodes, uint64_t id);

/* Attributes of the node, whose descriptor fd is; a new birth time is taken over. */
rsb_nodiscard int rsb_nodes_attr(
	struct rsb_nodes *nodes, uint64_t id, int fd, struct rsb_attr *ret_attr);

/* The way to a node: from a descriptor through names, the node itself first. For resolve.c. */
struct rsb_step {
	struct rsb_ident ident;
	char name[RSB_NAME_MAX + 1]; /* empty: unknown */
};
struct rsb_trail {
	int fd; /* where it starts; -1: nowhere; the node itself if n_step is 0 */
	size_t n_step;
	struct rsb_step *steps;
};
/* -ESTALE: no such id, or not the inode and birth time that the host expects. */
rsb_nodiscard int rsb_nodes_trail(
	struct rsb_nodes *nodes, const struct rsb_node *node, struct rsb_trail *ret_trail);
void rsb_trail_done(struct rsb_trail *trail);
/* Offers a descriptor of a directory on the way; taken (set to -1) if it is useful. */
void rsb_nodes_keep(struct rsb_nodes *nodes, const struct rsb_ident *ident, int *dir_fd);

struct rsb_nodes_stats {
	size_t n_node; /* entries, the root and those without id included */
	size_t n_id;
	size_t n_dir_fd; /* kept open, the root's excluded */
};
void rsb_nodes_stats(struct rsb_nodes *nodes, struct rsb_nodes_stats *ret_stats);

#endif
