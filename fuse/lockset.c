/* SPDX-License-Identifier: MIT */
#include "fuse/lockset.h"

#include <fcntl.h>
#include <stdlib.h>

/* A range that is locked; in rsb_inode.locks. */
struct range {
	struct rsb_list link;
	struct rsb_handle *handle; /* borrowed: it drops them when it goes */
	uint64_t owner;
	uint64_t start;
	uint64_t last;
};

static struct range *
entry(struct rsb_list *pos)
{
	return rsb_list_entry(pos, struct range, link);
}

static void
publish(struct rsb_handle *handle)
{
	uint32_t locked = rsb_lockset_holds(handle);

	if (handle->shared->locked != locked)
		rsb_shared_publish(&handle->shared->locked, locked);
}

static void
forget(struct range *range)
{
	struct rsb_handle *handle = range->handle;

	rsb_list_remove(&range->link);
	free(range);
	handle->n_range--;
	handle->inode->n_range--;
	publish(handle);
}

static void
add(struct rsb_handle *handle, uint64_t owner, uint64_t start, uint64_t last)
{
	struct rsb_inode *inode = handle->inode;
	struct range *range = inode->n_range < RSB_LOCKSET_MAX ? rsb_new(struct range) : NULL;

	if (range) {
		*range = (struct range){
			.handle = handle, .owner = owner, .start = start, .last = last
		};
		rsb_list_append(&inode->locks, &range->link);
		inode->n_range++;
		handle->n_range++;
	} else {
		handle->locks_unknown = true;
	}
	publish(handle);
}

/* Takes start to last out of owner's ranges, whoever had them. */
static void
cut(struct rsb_inode *inode, uint64_t owner, uint64_t start, uint64_t last)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, &inode->locks) {
		struct range *range = entry(pos);

		if (range->owner != owner || range->last < start || range->start > last)
			continue;
		if (range->last > last)
			add(range->handle, owner, last + 1, range->last);
		if (range->start < start) {
			range->last = start - 1;
			continue;
		}
		forget(range);
	}
}

void
rsb_lockset_note(struct rsb_handle *handle, const struct rsb_lock_req *req)
{
	uint64_t last = req->length ? req->start + req->length - 1 : UINT64_MAX;
	bool unlock = req->type == F_UNLCK;

	if (req->kind != RSB_LOCK_POSIX) {
		handle->has_flock = !unlock;
		publish(handle);
		return;
	}
	if (last < req->start)
		last = UINT64_MAX;
	/* What a later process does not know in detail ends with a whole unlock. */
	if (unlock && req->start == 0 && last == UINT64_MAX)
		handle->locks_unknown = false;
	cut(handle->inode, req->owner, req->start, last);
	if (!unlock)
		add(handle, req->owner, req->start, last);
	publish(handle);
}

void
rsb_lockset_drop_owner(struct rsb_handle *handle, uint64_t owner)
{
	handle->locks_unknown = false;
	cut(handle->inode, owner, 0, UINT64_MAX);
	publish(handle);
}

void
rsb_lockset_drop_handle(struct rsb_handle *handle)
{
	struct rsb_list *pos, *tmp;

	rsb_list_for_each_safe (pos, tmp, &handle->inode->locks) {
		if (entry(pos)->handle == handle)
			forget(entry(pos));
	}
	handle->has_flock = handle->locks_unknown = false;
	publish(handle);
}

bool
rsb_lockset_holds(const struct rsb_handle *handle)
{
	return handle->n_range || handle->has_flock || handle->locks_unknown;
}

void
rsb_lockset_restore(struct rsb_handle *handle)
{
	handle->locks_unknown = handle->shared->locked;
}
