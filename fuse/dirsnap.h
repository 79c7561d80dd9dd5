/* SPDX-License-Identifier: MIT */
#ifndef RSB_DIRSNAP_H
#define RSB_DIRSNAP_H

/*
 * The names of a directory as they were when it was opened or rewound. What vanishes meanwhile
 * shifts nothing: the offset after entry i is i + 1 for as long as the snapshot lives. "." and ".."
 * are entries 0 and 1. Pure memory, at most RSB_DIRSNAP_MAX entries, and all listings of a mount
 * share one budget: the sandbox says how much there is to list, and each open directory is another
 * listing.
 */

#include <stdbool.h>

#include "util/buf.h"
#include "util/cleanup.h"

#define RSB_DIRSNAP_MAX 1048576u

/*
 * Pages beyond one for each so many entries, before a listing counts as without end. A page of our
 * sidecar has a hundred and more; fewer only where entries vanish meanwhile.
 */
#define RSB_DIRSNAP_PAGE_LEAST 8u
#define RSB_DIRSNAP_PAGES_SPARE 64u

struct rsb_dirsnaps {
	size_t size; /* bytes of all listings */
	size_t max;
};

struct rsb_dirsnap;

struct rsb_dirsnap_entry {
	struct rsb_bytes name;
	uint64_t ino;
	uint32_t type; /* DT_* */
};

/* all lives longer. -ENOMEM. */
rsb_nodiscard int rsb_dirsnap_new(
	struct rsb_dirsnaps *all, uint64_t ino, uint64_t parent_ino, struct rsb_dirsnap **ret_snap);
void rsb_dirsnap_free(struct rsb_dirsnap *snap); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_dirsnap *, rsb_dirsnap_free)

/* -ENOSPC over RSB_DIRSNAP_MAX, -ENOMEM also over what all may hold. */
rsb_nodiscard int rsb_dirsnap_add(struct rsb_dirsnap *snap, const struct rsb_dirsnap_entry *entry);
/* A page was added and more is to come; -EIO: too many that brought next to nothing. */
rsb_nodiscard int rsb_dirsnap_page(struct rsb_dirsnap *snap);
/*
 * The listing is loaded once more, behind what is in it: what is in it already is then not added
 * again. -ENOMEM.
 */
rsb_nodiscard int rsb_dirsnap_again(struct rsb_dirsnap *snap);
/* Nothing more comes; r: why, 0 when it is whole. One that failed holds nothing any more. */
void rsb_dirsnap_finish(struct rsb_dirsnap *snap, int r);
/* 1: whole; 0: more comes; negative: the listing failed. */
int rsb_dirsnap_state(const struct rsb_dirsnap *snap);
size_t rsb_dirsnap_count(const struct rsb_dirsnap *snap);
/* 1 with entry number offset, a view until the next add; 0: not there (yet). */
int rsb_dirsnap_get(
	const struct rsb_dirsnap *snap, uint64_t offset, struct rsb_dirsnap_entry *ret_entry);

#endif
