/* SPDX-License-Identifier: MIT */
#include "sidecar/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/fd.h"

#define TEXT_MAX ((size_t)1 << 20)

struct rsb_holder *
rsb_holder_find(const struct rsb_list *holders, const struct rsb_fh *file, uint64_t owner)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, holders) {
		struct rsb_holder *h = rsb_list_entry(pos, struct rsb_holder, link);

		if (h->ino == file->ino && h->dev == file->dev && h->owner == owner)
			return h;
	}
	return NULL;
}

/* For both kinds of lock if the file allows it, else for what the open file can do. */
static int
open_again(const struct rsb_root *root, const struct rsb_fh *file)
{
	int fd = rsb_root_reopen(root, file->fd, O_RDWR);

	return fd >= 0 ? fd : rsb_root_reopen(root, file->fd, file->access);
}

int
rsb_holder_new(const struct rsb_root *root, const struct rsb_fh *file, uint64_t owner,
	struct rsb_holder **ret_holder)
{
	struct rsb_holder *h = rsb_new(struct rsb_holder);

	if (!h)
		return -ENOMEM;
	*h = (struct rsb_holder){
		.dev = file->dev,
		.ino = file->ino,
		.owner = owner,
		.fh = file->fh,
		.fd = open_again(root, file),
	};
	if (h->fd < 0) {
		/* fcntl(2) knows no other word for it. */
		int r = h->fd == -EMFILE || h->fd == -ENFILE ? -ENOLCK : h->fd;

		free(h);
		return r;
	}
	*ret_holder = h;
	return 0;
}

void
rsb_holders_free(struct rsb_list *holders)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, holders) {
		struct rsb_holder *h = rsb_list_entry(pos, struct rsb_holder, link);

		rsb_list_remove(&h->link);
		(void)close(h->fd);
		free(h);
	}
}

void
rsb_holder_tell(const struct rsb_holder *holder, struct rsb_lockgraph *graph)
{
	rsb_autofree char *text = NULL;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", holder->fd);
	if (rsb_fd_read_file(AT_FDCWD, path, TEXT_MAX, &text) == 0)
		rsb_lockgraph_add_owner(graph, holder->owner, holder->dev, holder->ino, text);
}

const struct rsb_holder *
rsb_holder_of(const struct rsb_list *holders, const struct rsb_fh *file, uint64_t owner,
	const struct rsb_lockgraph_lock *lock)
{
	RSB_CLEANUP(rsb_lockgraph_done) struct rsb_lockgraph graph = { .n_hold = 0 };
	struct rsb_list *pos;
	uint64_t other;

	if (rsb_lockgraph_init(&graph) < 0)
		return NULL;
	rsb_list_for_each (pos, holders) {
		const struct rsb_holder *h = rsb_list_entry(pos, struct rsb_holder, link);

		if (h->ino == file->ino && h->dev == file->dev)
			rsb_holder_tell(h, &graph);
	}
	if (!rsb_lockgraph_holder(&graph, owner, lock, &other))
		return NULL;
	return rsb_holder_find(holders, file, other);
}

struct flock
rsb_holder_flock(const struct rsb_lock *lock)
{
	return (struct flock){
		.l_type = lock->type,
		.l_whence = SEEK_SET,
		.l_start = lock->start,
		.l_len = lock->length,
	};
}

struct rsb_lockgraph_lock
rsb_holder_want(const struct rsb_fh *file, const struct rsb_lock *lock)
{
	return (struct rsb_lockgraph_lock){
		.dev = file->dev,
		.ino = file->ino,
		.start = (uint64_t)lock->start,
		.last = lock->length ? (uint64_t)(lock->start + (lock->length - 1)) : UINT64_MAX,
		.write = lock->type == F_WRLCK,
	};
}

int
rsb_holder_test(const struct rsb_list *holders, const struct rsb_fh *file,
	const struct rsb_lock *lock, struct rsb_getlk_rep *ret_rep)
{
	const struct rsb_lockgraph_lock want = rsb_holder_want(file, lock);
	struct flock fl = rsb_holder_flock(lock);
	/* The owner's own locks are in nobody's way; the open file itself has none of these. */
	const struct rsb_holder *h = rsb_holder_find(holders, file, lock->owner);

	if (fcntl(h ? h->fd : file->fd, F_OFD_GETLK, &fl) < 0)
		return -errno;
	*ret_rep = (struct rsb_getlk_rep){ .type = (uint64_t)fl.l_type };
	if (fl.l_type == F_UNLCK)
		return 0;
	ret_rep->start = (uint64_t)fl.l_start;
	ret_rep->length = (uint64_t)fl.l_len;
	/* A process here has a number that means nothing there. */
	h = fl.l_pid == -1 ? rsb_holder_of(holders, file, lock->owner, &want) : NULL;
	ret_rep->pid = h ? h->pid : 0;
	return 0;
}
