/* SPDX-License-Identifier: MIT */
#include "sidecar/listkeep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "util/secret.h"
#include "util/thread.h"

struct kept {
	uint64_t id; /* 0: none */
	uint64_t used;
	int fd;
};

struct rsb_listkeep {
	struct rsb_mutex lock;
	struct kept lists[RSB_LISTKEEP_N]; /* {lock} */
	uint64_t uses;                     /* {lock} */
};

int
rsb_listkeep_new(struct rsb_listkeep **ret_keep)
{
	struct rsb_listkeep *keep = rsb_new(struct rsb_listkeep);

	if (!keep)
		return -ENOMEM;
	rsb_mutex_init(&keep->lock);
	*ret_keep = keep;
	return 0;
}

void
rsb_listkeep_free(struct rsb_listkeep *keep)
{
	if (!keep)
		return;
	for (size_t i = 0; i < RSB_LISTKEEP_N; i++)
		if (keep->lists[i].id)
			(void)close(keep->lists[i].fd);
	rsb_mutex_done(&keep->lock);
	free(keep);
}

int
rsb_listkeep_file(void)
{
	static const char *const dirs[] = { "/var/tmp", "/tmp" };
	int fd = -1;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(dirs) && fd < 0; i++)
		fd = open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static struct kept *
oldest_locked(struct rsb_listkeep *keep) RSB_REQUIRES(keep->lock)
{
	struct kept *oldest = &keep->lists[0];

	for (size_t i = 1; i < RSB_LISTKEEP_N; i++)
		if (keep->lists[i].used < oldest->used)
			oldest = &keep->lists[i];
	return oldest;
}

int
rsb_listkeep_add(struct rsb_listkeep *keep, int fd, uint64_t *ret_id)
{
	rsb_autoclose int old = -1;
	struct kept *kept;
	uint64_t id;
	int r = rsb_random(&id, sizeof(id));

	if (r < 0) {
		(void)close(fd);
		return r;
	}
	id = (id >> 1) | 1;
	rsb_mutex_lock(&keep->lock);
	kept = oldest_locked(keep);
	if (kept->id)
		old = kept->fd;
	*kept = (struct kept){ .id = id, .used = ++keep->uses, .fd = fd };
	rsb_mutex_unlock(&keep->lock);
	*ret_id = id;
	return 0;
}

int
rsb_listkeep_get(struct rsb_listkeep *keep, uint64_t id)
{
	int fd = -ENOENT;

	rsb_mutex_lock(&keep->lock);
	for (size_t i = 0; i < RSB_LISTKEEP_N && id; i++)
		if (keep->lists[i].id == id) {
			keep->lists[i].used = ++keep->uses;
			fd = fcntl(keep->lists[i].fd, F_DUPFD_CLOEXEC, 0);
			if (fd < 0)
				fd = -errno;
		}
	rsb_mutex_unlock(&keep->lock);
	return fd;
}
