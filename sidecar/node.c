/* SPDX-License-Identifier: MIT */
#include "sidecar/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "sidecar/attr.h"
#include "sidecar/entries.h"
#include "util/cleanup.h"
#include "util/thread.h"

/* Longest way of directories without a descriptor that is walked. */
#define TRAIL_MAX 2048

struct rsb_nodes {
	struct rsb_root root; /* const */
	struct rsb_mutex lock;
	struct rsb_entries t; /* {lock} */
};

int
rsb_nodes_new(const struct rsb_sidecar_config *config, struct rsb_nodes **ret_nodes)
{
	RSB_CLEANUP(rsb_nodes_freep) struct rsb_nodes *nodes = rsb_new(struct rsb_nodes);
	size_t dir_fds_max = RSB_DIR_FDS_MAX;
	struct rsb_ident ident;
	struct rlimit limit;

	if (!nodes)
		return -ENOMEM;
	/* Where few descriptors are allowed, most are for open files. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < dir_fds_max)
		dir_fds_max = rsb_max((size_t)limit.rlim_cur / 4, (size_t)1);
	rsb_mutex_init(&nodes->lock);
	rsb_entries_init(&nodes->t, dir_fds_max);
	rsb_root_init(&nodes->root, config->root_fd);

	int r = rsb_root_ident(&nodes->root, config->root_fd, "", &ident, NULL);
	if (r < 0)
		return r;
	r = rsb_entries_name(&nodes->t, &ident, RSB_NODE_ROOT, &nodes->t.top);
	if (r < 0)
		return r;
	nodes->t.top->n_given = 1;
	nodes->t.top->fd = fcntl(config->root_fd, F_DUPFD_CLOEXEC, 0);
	if (nodes->t.top->fd < 0)
		return -errno;
	*ret_nodes = rsb_steal(&nodes);
	return 0;
}

void
rsb_nodes_free(struct rsb_nodes *nodes)
{
	if (!nodes)
		return;
	rsb_entries_done(&nodes->t);
	rsb_root_done(&nodes->root);
	rsb_mutex_done(&nodes->lock);
	free(nodes);
}

const struct rsb_root *
rsb_nodes_root(const struct rsb_nodes *nodes)
{
	return &nodes->root;
}

int
rsb_nodes_offer(struct rsb_nodes *nodes, uint64_t id)
{
	rsb_mutex_lock(&nodes->lock);
	int r = rsb_entries_offer(&nodes->t, id);
	rsb_mutex_unlock(&nodes->lock);
	return r;
}

/* What was not known of one that was awaited. */
static void
learn(struct rsb_entry *e, const struct rsb_ident *ident)
{
	if (!e->ident.handle_size)
		e->ident = *ident;
	e->ident.btime_sec = ident->btime_sec;
	e->ident.btime_nsec = ident->btime_nsec;
}

static void
count(struct rsb_entry *e, uint64_t n_given)
{
	e->n_given = n_given ? rsb_max(e->n_given, n_given) : e->n_given + 1;
}

int
rsb_nodes_bind(struct rsb_nodes *nodes, const struct rsb_binding *b, uint64_t *ret_id)
{
	struct rsb_trash trash = RSB_TRASH_EMPTY;
	int r = 0;

	rsb_mutex_lock(&nodes->lock);
	struct rsb_entry *e = rsb_entries_find(&nodes->t, b->ident);
	if (!e || !e->id)
		r = rsb_entries_name(&nodes->t, b->ident, b->id, &e);
	if (r == 0) {
		if (e != nodes->t.top)
			count(e, b->n_given);
		learn(e, b->ident);
		rsb_entries_hint(&nodes->t, e, b->parent, b->name, &trash);
		if (b->dir_fd)
			rsb_entries_keep(&nodes->t, e, b->dir_fd, &trash);
		*ret_id = e->id;
	}
	rsb_mutex_unlock(&nodes->lock);
	rsb_trash_empty(&trash);
	return r;
}

int
rsb_nodes_await(struct rsb_nodes *nodes, const struct rsb_adopt_one *one)
{
	/* Of another file system below the workspace it would have to be looked at. */
	const struct rsb_ident ident = {
		.dev = nodes->t.top->ident.dev,
		.ino = one->node.ino,
		.type = (uint32_t)one->type,
		.btime_sec = one->node.btime.sec,
		.btime_nsec = (uint32_t)one->node.btime.nsec,
	};
	struct rsb_trash trash = RSB_TRASH_EMPTY;
	char name[RSB_NAME_MAX + 1];
	int r = rsb_root_name(one->name, name);

	if (r < 0)
		return r;
	if (!ident.btime_sec && !ident.btime_nsec)
		return -ESTALE;
	rsb_mutex_lock(&nodes->lock);
	struct rsb_entry *e = rsb_entries_find(&nodes->t, &ident);
	if (!e || !e->id)
		r = rsb_entries_name(&nodes->t, &ident, one->node.id, &e);
	else if (e->id != one->node.id)
		r = -EINVAL;
	if (r == 0) {
		count(e, one->n_given);
		/* It leads there again if only a directory above was moved. */
		if (!e->name)
			rsb_entries_hint(&nodes->t, e, one->parent, name, &trash);
	}
	rsb_mutex_unlock(&nodes->lock);
	rsb_trash_empty(&trash);
	return r;
}

void
rsb_nodes_forget(struct rsb_nodes *nodes, uint64_t id, uint64_t n)
{
	struct rsb_trash trash = RSB_TRASH_EMPTY;

	rsb_mutex_lock(&nodes->lock);
	struct rsb_entry *e = rsb_entries_get(&nodes->t, id);
	if (e && e != nodes->t.top) {
		e->n_given -= rsb_min(n, e->n_given);
		rsb_entries_reap(&nodes->t, e, &trash);
	}
	rsb_mutex_unlock(&nodes->lock);
	rsb_trash_empty(&trash);
}

uint64_t
rsb_nodes_find(struct rsb_nodes *nodes, const struct rsb_ident *ident)
{
	rsb_mutex_lock(&nodes->lock);
	const struct rsb_entry *e = rsb_entries_find(&nodes->t, ident);
	uint64_t id = e ? e->id : 0;
	rsb_mutex_unlock(&nodes->lock);
	return id;
}

void
rsb_nodes_named(
	struct rsb_nodes *nodes, const struct rsb_ident *ident, uint64_t parent, const char *name)
{
	struct rsb_trash trash = RSB_TRASH_EMPTY;

	rsb_mutex_lock(&nodes->lock);
	struct rsb_entry *e = rsb_entries_find(&nodes->t, ident);
	if (e && e->id) {
		learn(e, ident);
		rsb_entries_hint(&nodes->t, e, parent, name, &trash);
	}
	rsb_mutex_unlock(&nodes->lock);
	rsb_trash_empty(&trash);
}

void
rsb_nodes_unnamed(struct rsb_nodes *nodes, const struct rsb_ident *ident, uint64_t parent,
	const char *name, bool gone)
{
	struct rsb_trash trash = RSB_TRASH_EMPTY;

	rsb_mutex_lock(&nodes->lock);
	struct rsb_entry *e = rsb_entries_find(&nodes->t, ident);
	if (e && e != nodes->t.top) {
		rsb_entries_unname(&nodes->t, e, parent, gone ? NULL : name, &trash);
		if (gone)
			rsb_entries_hide(&nodes->t, e);
	}
	rsb_mutex_unlock(&nodes->lock);
	rsb_trash_empty(&trash);
}

int
rsb_nodes_pin(struct rsb_nodes *nodes, uint64_t id, int fd)
{
	rsb_autoclose int mine = fd;

	rsb_mutex_lock(&nodes->lock);
	struct rsb_entry *e = rsb_entries_get(&nodes->t, id);
	if (e) {
		e->n_pin++;
		if (e->fd < 0)
			e->fd = rsb_steal_fd(&mine);
	}
	rsb_mutex_unlock(&nodes->lock);
	return e ? 0 : -ESTALE;
}

void
rsb_nodes_unpin(struct rsb_nodes *nodes, uint64_t id)
{
	struct rsb_trash trash = RSB_TRASH_EMPTY;

	rsb_mutex_lock(&nodes->lock);
	struct rsb_entry *e = rsb_entries_get(&nodes->t, id);
	if (e && e->n_pin && --e->n_pin == 0) {
		if (e->ident.type != S_IFDIR)
			trash.fd = rsb_steal_fd(&e->fd);
		rsb_entries_reap(&nodes->t, e, &trash);
	}
	rsb_mutex_unlock(&nodes->lock);
	rsb_trash_empty(&trash);
}

int
rsb_nodes_attr(struct rsb_nodes *nodes, uint64_t id, int fd, struct rsb_attr *ret_attr)
{
	int r = rsb_attr_read(fd, ret_attr);

	if (r < 0)
		return r;
	rsb_mutex_lock(&nodes->lock);
	struct rsb_entry *e = rsb_entries_get(&nodes->t, id);
	if (e && e->ident.ino == ret_attr->ino) {
		e->ident.btime_sec = ret_attr->btime.sec;
		e->ident.btime_nsec = (uint32_t)ret_attr->btime.nsec;
	}
	rsb_mutex_unlock(&nodes->lock);
	return 0;
}

static bool
is_expected(const struct rsb_entry *e, const struct rsb_node *node)
{
	const struct rsb_time *t = &node->btime;

	/* A request that was sent before the reply to the look-up does not know yet. */
	if (node->ino == 0)
		return true;
	if (node->ino != e->ident.ino)
		return false;
	return (t->sec == e->ident.btime_sec && t->nsec == e->ident.btime_nsec) ||
	       (t->sec == e->told.sec && t->nsec == e->told.nsec);
}

static int
trail_locked(struct rsb_nodes *nodes, struct rsb_entry *e, struct rsb_trail *trail)
{
	size_t n_step = 0;

	for (struct rsb_entry *up = e; up && up->fd < 0; up = up->parent)
		n_step++;
	if (n_step > TRAIL_MAX)
		return -ESTALE;
	trail->steps = n_step ? rsb_new_array(struct rsb_step, n_step) : NULL;
	if (n_step && !trail->steps)
		return -ENOMEM;
	for (; e && e->fd < 0; e = e->parent) {
		struct rsb_step *step = &trail->steps[trail->n_step++];

		step->ident = e->ident;
		if (e->name)
			memcpy(step->name, e->name, strlen(e->name) + 1);
	}
	if (!e)
		return 0;
	rsb_entries_touch(&nodes->t, e);
	trail->fd = fcntl(e->fd, F_DUPFD_CLOEXEC, 0);
	return trail->fd < 0 ? -errno : 0;
}

int
rsb_nodes_trail(struct rsb_nodes *nodes, const struct rsb_node *node, struct rsb_trail *ret_trail)
{
	struct rsb_trail trail = { .fd = -1 };
	int r = -ESTALE;

	rsb_mutex_lock(&nodes->lock);
	struct rsb_entry *e = rsb_entries_get(&nodes->t, node->id);
	if (e && is_expected(e, node))
		r = trail_locked(nodes, e, &trail);
	rsb_mutex_unlock(&nodes->lock);
	if (r < 0)
		rsb_trail_done(&trail);
	else
		*ret_trail = trail;
	return r;
}

void
rsb_trail_done(struct rsb_trail *trail)
{
	if (trail->fd >= 0)
		(void)close(trail->fd);
	free(trail->steps);
	*trail = (struct rsb_trail){ .fd = -1 };
}

void
rsb_nodes_keep(struct rsb_nodes *nodes, const struct rsb_ident *ident, int *dir_fd)
{
	struct rsb_trash trash = RSB_TRASH_EMPTY;

	rsb_mutex_lock(&nodes->lock);
	struct rsb_entry *e = rsb_entries_find(&nodes->t, ident);
	if (e)
		rsb_entries_keep(&nodes->t, e, dir_fd, &trash);
	rsb_mutex_unlock(&nodes->lock);
	rsb_trash_empty(&trash);
}

void
rsb_nodes_stats(struct rsb_nodes *nodes, struct rsb_nodes_stats *ret_stats)
{
	rsb_mutex_lock(&nodes->lock);
	*ret_stats = (struct rsb_nodes_stats){
		.n_node = nodes->t.n_entry,
		.n_id = nodes->t.ids.n,
		.n_dir_fd = nodes->t.n_lru,
	};
	rsb_mutex_unlock(&nodes->lock);
}
