/* SPDX-License-Identifier: MIT */
#ifndef RSB_ENTRIES_H
#define RSB_ENTRIES_H

/*
 * The tables inside the node table: entries by id and by ident, their hints and the order in which
 * directory descriptors were used. No lock and no system call; node.c brings the lock, and empties
 * the trash after it was given back, since close(2) can block.
 */

#include <stdbool.h>

#include "proto/op.h"
#include "sidecar/root.h"
#include "util/list.h"
#include "util/map.h"

/* Of all files. The host may know more, and then it asks again. */
#define RSB_ALIASES_MAX (1u << 18)

/* Another name that a file was seen under, next to its hint. */
struct rsb_alias {
	struct rsb_alias *next; /* an older one */
	struct rsb_entry *parent;
	char *name;
};

struct rsb_entry {
	uint64_t id; /* 0: the host has no name for it (any more) */
	struct rsb_ident ident;
	struct rsb_time told;     /* the birth time of the first reply */
	struct rsb_entry *same;   /* next with the same hash; after removal: next of the trash */
	struct rsb_entry *parent; /* the hint; NULL with name */
	char *name;
	struct rsb_alias *aliases; /* the latest first; directories have none */
	uint64_t n_given;
	uint32_t n_pin;
	uint32_t n_child; /* hints and aliases whose parent this is */
	int fd;
	bool gone; /* no longer found by its ident */
	struct rsb_list lru;
};

struct rsb_entries {
	size_t dir_fds_max;
	struct rsb_map ids;
	struct rsb_map idents; /* hash of dev and ino to a chain */
	struct rsb_list lru;   /* directories with a descriptor, the latest used last */
	size_t n_lru;
	size_t n_entry;
	size_t n_alias;
	struct rsb_entry *top; /* never reaped */
};

struct rsb_trash {
	struct rsb_entry *dead;
	int fd;
};

#define RSB_TRASH_EMPTY                \
	{                              \
		.dead = NULL, .fd = -1 \
	}
void rsb_trash_empty(struct rsb_trash *trash);

void rsb_entries_init(struct rsb_entries *t, size_t dir_fds_max);
/* Entries and their descriptors too; needs no lock. */
void rsb_entries_done(struct rsb_entries *t);

/* NULL when absent. */
struct rsb_entry *rsb_entries_find(const struct rsb_entries *t, const struct rsb_ident *ident);
struct rsb_entry *rsb_entries_get(const struct rsb_entries *t, uint64_t id);

/* -EINVAL: 0 or taken; -ENFILE: too many. */
rsb_nodiscard int rsb_entries_offer(const struct rsb_entries *t, uint64_t id);
/* Gives *e the id; NULL: makes it first. -ENOMEM and the errors of offer. */
rsb_nodiscard int rsb_entries_name(
	struct rsb_entries *t, const struct rsb_ident *ident, uint64_t id, struct rsb_entry **e);

/* A directory without a descriptor takes this one; the one that has to go for it is trash. */
void rsb_entries_keep(
	struct rsb_entries *t, struct rsb_entry *e, int *dir_fd, struct rsb_trash *trash);
void rsb_entries_touch(struct rsb_entries *t, struct rsb_entry *e);
/* Removes e, and whatever only e kept, unless something needs it. */
void rsb_entries_reap(struct rsb_entries *t, struct rsb_entry *e, struct rsb_trash *trash);
/*
 * e has an id. The hint that it had becomes an alias if e is a file. Without memory there is no
 * hint, which costs an ESTALE at worst.
 */
void rsb_entries_hint(struct rsb_entries *t, struct rsb_entry *e, uint64_t parent_id,
	const char *name, struct rsb_trash *trash);
void rsb_entries_unhint(struct rsb_entries *t, struct rsb_entry *e, struct rsb_trash *trash);
/* It lost this name; NULL: all. Another one that it was seen under becomes the hint. */
void rsb_entries_unname(struct rsb_entries *t, struct rsb_entry *e, uint64_t parent_id,
	const char *name, struct rsb_trash *trash);
/* Its inode number is free: no longer found by its ident. */
void rsb_entries_hide(struct rsb_entries *t, struct rsb_entry *e);

#endif
