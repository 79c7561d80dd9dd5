/* SPDX-License-Identifier: MIT */
#include "fuse/inode.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "fuse/alias.h"
#include "fuse/attr.h"
#include "fuse/gitplace.h"
#include "fuse/guard.h"
#include "fuse/namestore.h"
#include "fuse/seen.h"
#include "fuse/wrote.h"

#define ROOT_INDEX 1u

struct rsb_inodes {
	struct rsb_shared *shared;
	struct rsb_inode **by_index; /* RSB_NODES_MAX + 1 places, untouched ones cost nothing */
	struct rsb_map by_id;
	struct rsb_namestore *names;
	struct rsb_aliases *aliases;
	uint64_t epoch;
	rsb_inode_forget_fn forget;
	void *arg;
	uint64_t *n_counted; /* of the reply at hand; NULL: none */
	uint64_t n_skip;     /* gifts of it that were counted before */
};

static uint32_t
index_of(uint64_t nodeid)
{
	return (uint32_t)nodeid;
}

struct rsb_shared_node *
rsb_inode_shared(const struct rsb_inode *inode)
{
	return &inode->set->shared->nodes[index_of(inode->nodeid)];
}

static struct rsb_inode *
inode_new(struct rsb_inodes *set, uint64_t nodeid, uint64_t id, bool left)
{
	struct rsb_inode *inode = rsb_new(struct rsb_inode);

	if (!inode)
		return NULL;
	inode->set = set;
	inode->nodeid = nodeid;
	inode->id = id;
	inode->epoch = set->epoch;
	inode->wire.id = id;
	inode->depth_least = RSB_SEEN_DEPTH_MAX;
	rsb_list_init(&inode->handles);
	rsb_list_init(&inode->locks);
	inode->left = left;
	if (!left && rsb_map_put(&set->by_id, id, inode) < 0) {
		free(inode);
		return NULL;
	}
	set->by_index[index_of(nodeid)] = inode;
	return inode;
}

static void
inode_free(struct rsb_inode *inode)
{
	rsb_gitplaces_free(inode->git_places);
	rsb_guard_file_free(inode->guard);
	rsb_wrote_drop(inode);
	free(inode->target);
	free(inode);
}

/* A node that the process of before knew. */
static int
restore(struct rsb_inodes *inodes, uint32_t index)
{
	const struct rsb_shared_node *shared = &inodes->shared->nodes[index];
	struct rsb_inode *inode;

	if (!shared->id)
		return 0;
	inode = inode_new(inodes, (uint64_t)shared->generation << 32 | index, shared->id,
		shared->type & RSB_SHARED_NODE_LEFT);
	if (!inode)
		return -ENOMEM;
	inode->wire.ino = shared->ino;
	inode->wire.btime.sec = shared->btime_sec;
	inode->wire.btime.nsec = shared->btime_nsec;
	inode->attr.mode = shared->type & S_IFMT;
	inode->attr.ino = inode->wire.ino;
	inode->attr.btime = inode->wire.btime;
	inode->parent = shared->parent;
	inode->depth_least = shared->depth_least;
	inode->git_seen = shared->git_seen;
	inode->dir_names = UINT64_MAX;
	/* What the kernel keeps of it nobody knows. */
	inode->kernel_gen = shared->n_kernel ? 1 : 0;
	return 0;
}

int
rsb_inodes_new(struct rsb_shared *shared, rsb_inode_forget_fn forget, void *arg,
	struct rsb_inodes **ret_inodes)
{
	RSB_CLEANUP(rsb_inodes_freep) struct rsb_inodes *inodes = rsb_new(struct rsb_inodes);
	int r;

	if (!inodes)
		return -ENOMEM;
	inodes->shared = shared;
	inodes->forget = forget;
	inodes->arg = arg;
	inodes->epoch = 1;
	rsb_map_init(&inodes->by_id, RSB_NODES_MAX + 1);
	inodes->by_index = rsb_new_array(struct rsb_inode *, RSB_NODES_MAX + 1);
	if (!inodes->by_index || !inode_new(inodes, ROOT_INDEX, 1, false))
		return -ENOMEM;
	rsb_inode_root(inodes)->git_seen = shared->nodes[ROOT_INDEX].git_seen;
	if (shared->head.n_node > ROOT_INDEX)
		rsb_inode_root(inodes)->dir_names = UINT64_MAX;
	rsb_shared_recover_nodes(shared);
	r = rsb_namestore_new(shared, &inodes->names);
	if (r >= 0)
		r = rsb_aliases_new(shared, inodes->names, &inodes->aliases);
	if (r < 0)
		return r;
	for (uint32_t i = ROOT_INDEX + 1; i <= shared->head.n_node; i++) {
		r = restore(inodes, i);
		if (r < 0)
			return r;
	}
	for (uint32_t i = ROOT_INDEX + 1; i <= shared->head.n_node; i++)
		if (inodes->by_index[i])
			rsb_seen_restore(inodes->by_index[i]);
	rsb_aliases_restore(inodes->aliases, inodes);
	*ret_inodes = rsb_steal(&inodes);
	return 0;
}

void
rsb_inodes_free(struct rsb_inodes *inodes)
{
	struct rsb_inode *inode;
	size_t cursor = 0;

	if (!inodes)
		return;
	/* Before there are any the array may be missing. */
	while (inodes->by_index && (inode = rsb_inode_next(inodes, &cursor)))
		inode_free(inode);
	rsb_map_done(&inodes->by_id);
	rsb_aliases_free(inodes->aliases);
	rsb_namestore_free(inodes->names);
	free(inodes->by_index);
	free(inodes);
}

struct rsb_inode *
rsb_inode_by_nodeid(const struct rsb_inodes *inodes, uint64_t nodeid)
{
	uint32_t index = index_of(nodeid);
	struct rsb_inode *inode;

	if (index > RSB_NODES_MAX)
		return NULL;
	inode = inodes->by_index[index];
	return inode && inode->nodeid == nodeid ? inode : NULL;
}

struct rsb_inode *
rsb_inode_by_id(const struct rsb_inodes *inodes, uint64_t id)
{
	return rsb_map_get(&inodes->by_id, id);
}

struct rsb_inode *
rsb_inode_root(const struct rsb_inodes *inodes)
{
	return inodes->by_index[ROOT_INDEX];
}

struct rsb_aliases *
rsb_inodes_aliases(const struct rsb_inodes *inodes)
{
	return inodes->aliases;
}

struct rsb_namestore *
rsb_inodes_names(const struct rsb_inodes *inodes)
{
	return inodes->names;
}

struct rsb_shared *
rsb_inodes_shared(const struct rsb_inodes *inodes)
{
	return inodes->shared;
}

size_t
rsb_inodes_count(const struct rsb_inodes *inodes)
{
	return inodes->by_id.n;
}

struct rsb_inode *
rsb_inode_next(const struct rsb_inodes *inodes, size_t *cursor)
{
	while (*cursor < inodes->shared->head.n_node) {
		struct rsb_inode *inode = inodes->by_index[++*cursor];

		if (inode)
			return inode;
	}
	return NULL;
}

static bool
is_same_file(const struct rsb_inode *inode, const struct rsb_attr *attr)
{
	return inode->wire.ino == attr->ino && inode->wire.btime.sec == attr->btime.sec &&
	       inode->wire.btime.nsec == attr->btime.nsec &&
	       (inode->attr.mode & S_IFMT) == (attr->mode & S_IFMT);
}

static int
make(struct rsb_inodes *inodes, uint64_t id, const struct rsb_attr *attr,
	struct rsb_inode **ret_inode)
{
	struct rsb_shared_node *shared;
	struct rsb_inode *inode;
	uint32_t index;
	int r;

	r = rsb_shared_node_new(inodes->shared, &index);
	if (r < 0)
		return r;
	shared = &inodes->shared->nodes[index];
	inode = inode_new(inodes, (uint64_t)shared->generation << 32 | index, id, false);
	if (!inode) {
		rsb_shared_node_free(inodes->shared, index);
		return -ENOMEM;
	}
	inode->wire.ino = attr->ino;
	inode->wire.btime = attr->btime;
	inode->attr = *attr;
	shared->ino = attr->ino;
	shared->btime_sec = attr->btime.sec;
	shared->btime_nsec = attr->btime.nsec;
	shared->type = (uint32_t)attr->mode & S_IFMT;
	shared->depth_least = RSB_SEEN_DEPTH_MAX;
	shared->git_seen = 0;
	rsb_shared_publish(&shared->id, id);
	*ret_inode = inode;
	return 0;
}

void
rsb_inodes_take_gifts(struct rsb_inodes *inodes, uint64_t *n_counted)
{
	inodes->n_counted = n_counted;
	inodes->n_skip = n_counted ? *n_counted : 0;
}

/* Killed between the two stores it counts too low: the sidecar keeps a node for longer. */
static void
count_gift(struct rsb_inode *inode)
{
	struct rsb_inodes *inodes = inode->set;

	if (inodes->n_skip) {
		inodes->n_skip--;
		return;
	}
	if (inodes->n_counted)
		rsb_shared_publish(inodes->n_counted, *inodes->n_counted + 1);
	rsb_inode_shared(inode)->n_given++;
}

int
rsb_inode_given(struct rsb_inodes *inodes, uint64_t id, const struct rsb_attr *attr,
	struct rsb_inode **ret_inode)
{
	struct rsb_inode *inode;
	int r;

	r = rsb_attr_check(attr);
	if (r < 0)
		return r;
	if (id <= ROOT_INDEX)
		return -ESTALE;
	inode = rsb_map_get(&inodes->by_id, id);
	if (inode && !is_same_file(inode, attr))
		return -ESTALE;
	if (!inode) {
		r = make(inodes, id, attr, &inode);
		if (r < 0) {
			/* Else the sidecar would keep for ever what it believes that we have. */
			inodes->forget(inodes->arg, id, 1);
			return r;
		}
	}
	count_gift(inode);
	*ret_inode = rsb_inode_ref(inode);
	return 0;
}

int
rsb_inode_replace(struct rsb_inode **inode)
{
	struct rsb_shared_node *shared, *old_shared = rsb_inode_shared(*inode);
	struct rsb_inode *new, *old = *inode;
	int r;

	/* First: killed in here, there are never two that are not left. */
	old_shared->type |= RSB_SHARED_NODE_LEFT;
	r = make(old->set, old->id, &old->attr, &new);
	if (r < 0) {
		old_shared->type &= ~RSB_SHARED_NODE_LEFT;
		return r;
	}
	/* All that the sidecar gave counts for the one that goes on. */
	shared = rsb_inode_shared(new);
	shared->n_given = old_shared->n_given;
	old_shared->n_given = 0;
	old->left = true;
	rsb_inode_note_git(new, old->git_seen);
	new->dir_names = old->dir_names;
	*inode = rsb_inode_ref(new);
	rsb_inode_unref(old);
	return 0;
}

void
rsb_inodes_set_epoch(struct rsb_inodes *inodes, uint64_t epoch)
{
	struct rsb_inode *inode;
	size_t cursor = 0;

	/* The next process must not name to a sidecar what an earlier one than its own gave. */
	while ((inode = rsb_inode_next(inodes, &cursor)))
		if (inode->nodeid != ROOT_INDEX)
			rsb_inode_shared(inode)->type |= RSB_SHARED_NODE_LEFT;
	inodes->epoch = epoch;
	rsb_inode_root(inodes)->epoch = epoch;
}

int
rsb_inode_check(const struct rsb_inode *inode)
{
	return inode->epoch == inode->set->epoch && !inode->left ? 0 : -ESTALE;
}

uint64_t
rsb_inode_given_count(const struct rsb_inode *inode)
{
	return rsb_inode_shared(inode)->n_given;
}

struct rsb_inode *
rsb_inode_ref(struct rsb_inode *inode)
{
	inode->n_ref++;
	return inode;
}

static bool
is_needed(const struct rsb_inode *inode)
{
	return inode->n_ref || rsb_inode_shared(inode)->n_kernel || inode->nodeid == ROOT_INDEX;
}

/* Its gifts are returned. The directory that it was in; NULL: none. */
static struct rsb_inode *
let_go(struct rsb_inode *inode)
{
	struct rsb_inode *dir = rsb_seen_leave(inode);
	struct rsb_inodes *set = inode->set;
	uint32_t index = index_of(inode->nodeid);
	struct rsb_shared_node *shared = rsb_inode_shared(inode);

	if (shared->n_given && inode->epoch == set->epoch)
		set->forget(set->arg, inode->id, shared->n_given);
	set->by_index[index] = NULL;
	if (!inode->left)
		(void)rsb_map_del(&set->by_id, inode->id);
	rsb_alias_lose_all(inode);
	rsb_shared_node_free(set->shared, index);
	rsb_namestore_drop(set->names, shared->name);
	inode_free(inode);
	return dir;
}

/* Nobody here and not the kernel needs it: it goes, and so on up. */
static void
collect(struct rsb_inode *inode)
{
	while (inode && !is_needed(inode))
		inode = let_go(inode);
}

void
rsb_inodes_sweep(struct rsb_inodes *inodes)
{
	for (uint32_t i = ROOT_INDEX + 1; i <= inodes->shared->head.n_node; i++) {
		if (inodes->by_index[i])
			collect(inodes->by_index[i]);
	}
}

void
rsb_inode_unref(struct rsb_inode *inode)
{
	if (!inode)
		return;
	inode->n_ref--;
	collect(inode);
}

void
rsb_inode_looked_up(struct rsb_inode *inode)
{
	rsb_inode_shared(inode)->n_kernel++;
}

void
rsb_inode_forget(struct rsb_inode *inode, uint64_t n)
{
	struct rsb_shared_node *shared = rsb_inode_shared(inode);

	shared->n_kernel -= rsb_min(n, shared->n_kernel);
	collect(inode);
}

void
rsb_inode_note_git(struct rsb_inode *inode, uint32_t seen)
{
	inode->git_seen |= seen;
	rsb_inode_shared(inode)->git_seen = inode->git_seen;
}
