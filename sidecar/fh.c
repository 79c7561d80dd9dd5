/* SPDX-License-Identifier: MIT */
#include "sidecar/fh.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/map.h"
#include "util/thread.h"

struct rsb_fhs {
	struct rsb_mutex lock;
	struct rsb_map map; /* {lock} */
};

static void
free_file(struct rsb_fh *file)
{
	if (file->fd >= 0)
		(void)close(file->fd); /* what was written was answered already */
	rsb_listing_free(file->listing);
	free(file);
}

int
rsb_fhs_new(struct rsb_fhs **ret_fhs)
{
	struct rsb_fhs *fhs = rsb_new(struct rsb_fhs);

	if (!fhs)
		return -ENOMEM;
	rsb_mutex_init(&fhs->lock);
	rsb_map_init(&fhs->map, RSB_FHS_MAX);
	*ret_fhs = fhs;
	return 0;
}

void
rsb_fhs_free(struct rsb_fhs *fhs)
{
	struct rsb_fh *file;
	size_t cursor = 0;
	uint64_t key;

	if (!fhs)
		return;
	while ((file = rsb_map_next(&fhs->map, &cursor, &key)))
		free_file(file);
	rsb_map_done(&fhs->map);
	rsb_mutex_done(&fhs->lock);
	free(fhs);
}

static int
offer_locked(const struct rsb_fhs *fhs, uint64_t fh)
{
	if (fh == 0 || rsb_map_get(&fhs->map, fh))
		return -EINVAL;
	return fhs->map.n >= RSB_FHS_MAX ? -ENFILE : 0;
}

int
rsb_fhs_offer(struct rsb_fhs *fhs, uint64_t fh)
{
	rsb_mutex_lock(&fhs->lock);
	int r = offer_locked(fhs, fh);
	rsb_mutex_unlock(&fhs->lock);
	return r;
}

static int
add(struct rsb_fhs *fhs, struct rsb_fh *file)
{
	rsb_mutex_lock(&fhs->lock);
	int r = offer_locked(fhs, file->fh);
	if (r == 0)
		r = rsb_map_put(&fhs->map, file->fh, file);
	rsb_mutex_unlock(&fhs->lock);
	return r;
}

int
rsb_fhs_add_file(struct rsb_fhs *fhs, uint64_t fh, uint64_t node, int fd, int access)
{
	rsb_autofree struct rsb_fh *file = rsb_new(struct rsb_fh);
	struct stat st;

	if (!file)
		return -ENOMEM;
	if (fstat(fd, &st) < 0)
		return -errno;
	*file = (struct rsb_fh){
		.fh = fh,
		.node = node,
		.fd = fd,
		.access = access,
		.dev = st.st_dev,
		.ino = st.st_ino,
		.n_ref = 1,
	};
	int r = add(fhs, file);
	if (r < 0)
		return r;
	(void)rsb_steal(&file);
	return 0;
}

int
rsb_fhs_add_dir(
	struct rsb_fhs *fhs, uint64_t fh, struct rsb_listing *listing, struct rsb_fh **ret_file)
{
	rsb_autofree struct rsb_fh *file = rsb_new(struct rsb_fh);

	if (!file)
		return -ENOMEM;
	/* The table's reference and the caller's. */
	*file = (struct rsb_fh){ .fh = fh, .fd = -1, .listing = listing, .n_ref = 2 };
	int r = add(fhs, file);
	if (r < 0)
		return r;
	*ret_file = rsb_steal(&file);
	return 0;
}

static struct rsb_fh *
find_locked(const struct rsb_fhs *fhs, uint64_t fh, enum rsb_fh_kind kind)
{
	struct rsb_fh *file = rsb_map_get(&fhs->map, fh);

	return file && !file->listing == (kind == RSB_FH_FILE) ? file : NULL;
}

int
rsb_fhs_get(struct rsb_fhs *fhs, uint64_t fh, enum rsb_fh_kind kind, struct rsb_fh **ret_file)
{
	rsb_mutex_lock(&fhs->lock);
	struct rsb_fh *file = find_locked(fhs, fh, kind);
	if (file)
		file->n_ref++;
	rsb_mutex_unlock(&fhs->lock);
	if (!file)
		return -EBADF;
	*ret_file = file;
	return 0;
}

void
rsb_fhs_put(struct rsb_fhs *fhs, struct rsb_fh *file)
{
	rsb_mutex_lock(&fhs->lock);
	bool last = --file->n_ref == 0;
	rsb_mutex_unlock(&fhs->lock);
	if (last)
		free_file(file);
}

int
rsb_fhs_remove(struct rsb_fhs *fhs, uint64_t fh, enum rsb_fh_kind kind, struct rsb_fh **ret_file)
{
	rsb_mutex_lock(&fhs->lock);
	struct rsb_fh *file = find_locked(fhs, fh, kind);
	if (file)
		(void)rsb_map_del(&fhs->map, fh);
	rsb_mutex_unlock(&fhs->lock);
	if (!file)
		return -EBADF;
	*ret_file = file;
	return 0;
}

void
rsb_fhs_unlock_all(struct rsb_fhs *fhs)
{
	const struct rsb_fh *file;
	size_t cursor = 0;
	uint64_t key;

	rsb_mutex_lock(&fhs->lock);
	while ((file = rsb_map_next(&fhs->map, &cursor, &key)))
		if (file->fd >= 0)
			(void)flock(file->fd, LOCK_UN);
	rsb_mutex_unlock(&fhs->lock);
}

size_t
rsb_fhs_count(struct rsb_fhs *fhs)
{
	rsb_mutex_lock(&fhs->lock);
	size_t n = fhs->map.n;
	rsb_mutex_unlock(&fhs->lock);
	return n;
}
