/* SPDX-License-Identifier: MIT */
#ifndef RSB_LISTING_H
#define RSB_LISTING_H

/*
 * A directory that is read page by page. The kernel keeps the place, so entries that vanish or
 * appear between pages disturb no other. A user takes the listing for a whole page; two pages that
 * were asked for at once follow each other.
 */

#include "util/buf.h"

struct rsb_listing;

/* fd: of the directory, opened for reading; taken on success. -ENOMEM. */
rsb_nodiscard int rsb_listing_new(int fd, struct rsb_listing **ret_listing);
void rsb_listing_free(struct rsb_listing *listing); /* NULL is fine */
RSB_DEFINE_CLEANUP(struct rsb_listing *, rsb_listing_free)

/* For one user at a time; may wait for the other's page. */
void rsb_listing_take(struct rsb_listing *listing);
void rsb_listing_give_back(struct rsb_listing *listing);

int rsb_listing_fd(const struct rsb_listing *listing);

struct rsb_listing_entry {
	const char *name; /* lives until the next call */
	uint64_t ino;
	unsigned char type; /* DT_* */
};
/* 1 with an entry, "." and ".." left out; 0 at the end; negative errno of getdents64(2). */
rsb_nodiscard int rsb_listing_next(
	struct rsb_listing *listing, struct rsb_listing_entry *ret_entry);

#endif
