/* SPDX-License-Identifier: MIT */
#include "sidecar/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/str.h"
#include "util/thread.h"

/* A host may have thousands of these open at a time. */
#define LISTING_SIZE 8192

struct rsb_listing {
	int fd; /* const */
	struct rsb_mutex lock;
	struct rsb_cond free_again;
	bool taken; /* {lock} */

	/* Whoever took it: */
	size_t off; /* where the next entry begins */
	size_t size;
	_Alignas(struct dirent64) uint8_t data[LISTING_SIZE];
};

int
rsb_listing_new(int fd, struct rsb_listing **ret_listing)
{
	struct rsb_listing *listing = rsb_new(struct rsb_listing);

	if (!listing)
		return -ENOMEM;
	listing->fd = fd;
	rsb_mutex_init(&listing->lock);
	rsb_cond_init(&listing->free_again);
	*ret_listing = listing;
	return 0;
}

void
rsb_listing_free(struct rsb_listing *listing)
{
	if (!listing)
		return;
	(void)close(listing->fd);
	rsb_cond_done(&listing->free_again);
	rsb_mutex_done(&listing->lock);
	free(listing);
}

void
rsb_listing_take(struct rsb_listing *listing)
{
	rsb_mutex_lock(&listing->lock);
	while (listing->taken)
		rsb_cond_wait(&listing->free_again, &listing->lock);
	listing->taken = true;
	rsb_mutex_unlock(&listing->lock);
}

void
rsb_listing_give_back(struct rsb_listing *listing)
{
	rsb_mutex_lock(&listing->lock);
	listing->taken = false;
	rsb_cond_signal(&listing->free_again);
	rsb_mutex_unlock(&listing->lock);
}

int
rsb_listing_fd(const struct rsb_listing *listing)
{
	return listing->fd;
}

static int
fill(struct rsb_listing *listing)
{
	ssize_t n = getdents64(listing->fd, listing->data, sizeof(listing->data));

	/* A directory that was removed while we read it has come to its end. */
	if (n < 0 && errno != ENOENT)
		return -errno;
	listing->off = 0;
	listing->size = n < 0 ? 0 : (size_t)n;
	return listing->size > 0;
}

int
rsb_listing_next(struct rsb_listing *listing, struct rsb_listing_entry *ret_entry)
{
	for (;;) {
		if (listing->off >= listing->size) {
			int r = fill(listing);
			if (r <= 0)
				return r;
		}
		const struct dirent64 *d = (const void *)(listing->data + listing->off);

		listing->off += d->d_reclen;
		/* A sick file system may have anything in there. */
		if (!rsb_str_is_component(rsb_bytes_str(d->d_name)))
			continue;
		*ret_entry = (struct rsb_listing_entry){
			.name = d->d_name,
			.ino = d->d_ino,
			.type = d->d_type,
		};
		return 1;
	}
}
