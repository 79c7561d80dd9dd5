/* SPDX-License-Identifier: MIT */
#include "sidecar/entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"

void
rsb_trash_empty(struct rsb_trash *trash)
{
	while (trash->dead) {
		struct rsb_entry *e = trash->dead;

		trash->dead = e->same;
		if (e->fd >= 0)
			(void)close(e->fd);
		free(e->name);
		free(e);
	}
	if (trash->fd >= 0)
		(void)close(trash->fd);
	trash->fd = -1;
}

static uint64_t
hash(const struct rsb_ident *ident)
{
	return (ident->dev * UINT64_C(0x9e3779b97f4a7c15)) ^ ident->ino;
}

static bool
is_same(const struct rsb_entry *e, const struct rsb_ident *ident)
{
	if (e->fd >= 0)
		return e->ident.dev == ident->dev && e->ident.ino == ident->ino &&
		       e->ident.type == ident->type;
	return rsb_ident_same(&e->ident, ident);
}

struct rsb_entry *
rsb_entries_find(const struct rsb_entries *t, const struct rsb_ident *ident)
{
	struct rsb_entry *e = rsb_map_get(&t->idents, hash(ident));

	while (e && !is_same(e, ident))
		e = e->same;
	return e;
}

static int
chain(struct rsb_entries *t, struct rsb_entry *e)
{
	e->same = rsb_map_get(&t->idents, hash(&e->ident));
	return rsb_map_put(&t->idents, hash(&e->ident), e);
}

void
rsb_entries_hide(struct rsb_entries *t, struct rsb_entry *e)
{
	uint64_t key = hash(&e->ident);
	struct rsb_entry *first = rsb_map_get(&t->idents, key);

	if (e->gone)
		return;
	e->gone = true;
	if (first == e) {
		/* Replacing a key that is there needs no memory. */
		if (e->same)
			(void)!rsb_map_put(&t->idents, key, e->same);
		else
			(void)rsb_map_del(&t->idents, key);
	} else {
		while (first->same != e)
			first = first->same;
		first->same = e->same;
	}
	e->same = NULL;
}

static void
drop_lru(struct rsb_entries *t, struct rsb_entry *e)
{
	if (rsb_list_empty(&e->lru))
		return;
	rsb_list_remove(&e->lru);
	t->n_lru--;
}

void
rsb_entries_touch(struct rsb_entries *t, struct rsb_entry *e)
{
	if (rsb_list_empty(&e->lru))
		return;
	rsb_list_remove(&e->lru);
	rsb_list_append(&t->lru, &e->lru);
}

/* Gives the directory a descriptor; the one that has to go for it ends in the trash. */
void
rsb_entries_keep(struct rsb_entries *t, struct rsb_entry *e, int *dir_fd, struct rsb_trash *trash)
{
	if (e->ident.type != S_IFDIR || e->fd >= 0 || *dir_fd < 0)
		return;
	if (t->n_lru >= t->dir_fds_max) {
		struct rsb_entry *old = rsb_list_entry(t->lru.next, struct rsb_entry, lru);

		drop_lru(t, old);
		trash->fd = rsb_steal_fd(&old->fd);
	}
	e->fd = rsb_steal_fd(dir_fd);
	rsb_list_append(&t->lru, &e->lru);
	t->n_lru++;
}

/* Ends *link; its parent has one child less. */
static struct rsb_entry *
drop_alias(struct rsb_entries *t, struct rsb_alias **link)
{
	struct rsb_alias *alias = *link;
	struct rsb_entry *parent = alias->parent;

	*link = alias->next;
	t->n_alias--;
	parent->n_child--;
	free(alias->name);
	free(alias);
	return parent;
}

static struct rsb_alias **
find_alias(struct rsb_entry *e, const struct rsb_entry *parent, const char *name)
{
	struct rsb_alias **link = &e->aliases;

	while (*link && ((*link)->parent != parent || strcmp((*link)->name, name) != 0))
		link = &(*link)->next;
	return link;
}

/* Removes e, and whatever only e kept, unless something needs it. */
void
rsb_entries_reap(struct rsb_entries *t, struct rsb_entry *e, struct rsb_trash *trash)
{
	while (e && e != t->top && !e->n_given && !e->n_pin) {
		struct rsb_entry *parent = e->parent;

		if (e->id)
			(void)rsb_map_del(&t->ids, e->id);
		e->id = 0;
		if (e->n_child)
			return;
		rsb_entries_hide(t, e);
		drop_lru(t, e);
		/* Only a file has them, and what they lie in is a directory: one step deep. */
		while (e->aliases)
			rsb_entries_reap(t, drop_alias(t, &e->aliases), trash);
		t->n_entry--;
		e->same = trash->dead;
		trash->dead = e;
		if (parent)
			parent->n_child--;
		e = parent;
	}
}

void
rsb_entries_unhint(struct rsb_entries *t, struct rsb_entry *e, struct rsb_trash *trash)
{
	struct rsb_entry *parent = e->parent;

	free(e->name);
	e->name = NULL;
	e->parent = NULL;
	if (!parent)
		return;
	parent->n_child--;
	rsb_entries_reap(t, parent, trash);
}

void
rsb_entries_unname(struct rsb_entries *t, struct rsb_entry *e, uint64_t parent_id, const char *name,
	struct rsb_trash *trash)
{
	const struct rsb_entry *parent = rsb_map_get(&t->ids, parent_id);
	struct rsb_alias **link;

	while (!name && e->aliases)
		rsb_entries_reap(t, drop_alias(t, &e->aliases), trash);
	if (!name || (e->parent && e->parent == parent && strcmp(e->name, name) == 0)) {
		struct rsb_alias *next = e->aliases;

		rsb_entries_unhint(t, e, trash);
		if (!next)
			return;
		e->aliases = next->next;
		t->n_alias--;
		e->parent = next->parent;
		e->name = next->name;
		free(next);
		return;
	}
	link = find_alias(e, parent, name);
	if (*link)
		rsb_entries_reap(t, drop_alias(t, link), trash);
}

/* The hint becomes the latest alias; where that fails it is lost. */
static void
hint_to_alias(struct rsb_entries *t, struct rsb_entry *e, struct rsb_trash *trash)
{
	bool may = e->name && e->ident.type != S_IFDIR && t->n_alias < RSB_ALIASES_MAX;
	struct rsb_alias *alias = may ? rsb_new(struct rsb_alias) : NULL;

	if (!alias) {
		rsb_entries_unhint(t, e, trash);
		return;
	}
	*alias = (struct rsb_alias){
		.next = e->aliases,
		.parent = e->parent,
		.name = e->name,
	};
	e->aliases = alias;
	t->n_alias++;
	e->parent = NULL;
	e->name = NULL;
}

/* Without memory there is no hint, which costs an ESTALE at worst. */
void
rsb_entries_hint(struct rsb_entries *t, struct rsb_entry *e, uint64_t parent_id, const char *name,
	struct rsb_trash *trash)
{
	struct rsb_entry *parent = rsb_map_get(&t->ids, parent_id);
	struct rsb_alias **link;

	if (e == t->top || !parent || parent == e)
		return;
	if (e->parent == parent && strcmp(e->name, name) == 0)
		return;

	char *copy = strdup(name);
	if (!copy)
		return;
	/* A directory that is below e by its hint was moved out since, or e could not be here. */
	for (struct rsb_entry *up = parent; e->n_child && up; up = up->parent) {
		if (up->parent == e) {
			rsb_entries_unhint(t, up, trash);
			break;
		}
	}
	parent->n_child++;
	link = find_alias(e, parent, name);
	if (*link)
		(void)drop_alias(t, link); /* a child of parent all the same, so nothing to reap */
	hint_to_alias(t, e, trash);
	e->parent = parent;
	e->name = copy;
}

static int
insert(struct rsb_entries *t, const struct rsb_ident *ident, struct rsb_entry **ret)
{
	rsb_autofree struct rsb_entry *e = rsb_new(struct rsb_entry);

	if (!e)
		return -ENOMEM;
	e->ident = *ident;
	e->fd = -1;
	rsb_list_init(&e->lru);
	int r = chain(t, e);
	if (r < 0)
		return r == -ENOSPC ? -ENFILE : r;
	t->n_entry++;
	*ret = rsb_steal(&e);
	return 0;
}

int
rsb_entries_offer(const struct rsb_entries *t, uint64_t id)
{
	if (id == 0 || rsb_map_get(&t->ids, id))
		return -EINVAL;
	return t->n_entry >= RSB_NODES_MAX ? -ENFILE : 0;
}

int
rsb_entries_name(
	struct rsb_entries *t, const struct rsb_ident *ident, uint64_t id, struct rsb_entry **e)
{
	struct rsb_entry *named = *e;
	int r = rsb_entries_offer(t, id);

	if (r < 0)
		return r;
	if (!named) {
		r = insert(t, ident, &named);
		if (r < 0)
			return r;
	}
	r = rsb_map_put(&t->ids, id, named);
	if (r < 0) {
		struct rsb_trash trash = RSB_TRASH_EMPTY;

		/*
		 * Nothing but memory can be in this trash: the entry is new, or has entries below
		 * it.
		 */
		rsb_entries_reap(t, named, &trash);
		rsb_trash_empty(&trash);
		return r == -ENOSPC ? -ENFILE : r;
	}
	named->id = id;
	named->told = (struct rsb_time){ .sec = ident->btime_sec, .nsec = ident->btime_nsec };
	*e = named;
	return 0;
}

struct rsb_entry *
rsb_entries_get(const struct rsb_entries *t, uint64_t id)
{
	return rsb_map_get(&t->ids, id);
}

void
rsb_entries_init(struct rsb_entries *t, size_t dir_fds_max)
{
	*t = (struct rsb_entries){ .dir_fds_max = dir_fds_max };
	rsb_map_init(&t->ids, RSB_NODES_MAX);
	rsb_map_init(&t->idents, RSB_NODES_MAX);
	rsb_list_init(&t->lru);
}

void
rsb_entries_done(struct rsb_entries *t)
{
	struct rsb_trash trash = RSB_TRASH_EMPTY;
	struct rsb_entry *e;
	size_t cursor = 0;
	uint64_t id;

	/* An entry without an id is there for one below it that has one, and goes with that. */
	while ((e = rsb_map_next(&t->ids, &cursor, &id))) {
		e->n_given = 0;
		e->n_pin = 0;
		rsb_entries_reap(t, e, &trash);
	}
	rsb_trash_empty(&trash);
	if (t->top && t->top->fd >= 0)
		(void)close(t->top->fd);
	free(t->top);
	rsb_map_done(&t->ids);
	rsb_map_done(&t->idents);
}
