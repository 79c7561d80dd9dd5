/* SPDX-License-Identifier: MIT */
#include "fuse/handle.h"

#include <errno.h>
#include <fcntl.h>

#include "fuse/ahead.h"
#include "fuse/guard.h"
#include "fuse/ledger.h"
#include "fuse/lockset.h"
#include "fuse/log.h"

struct rsb_handles {
	struct rsb_ledger *ledger;
	struct rsb_map by_fh;
};

int
rsb_handles_new(struct rsb_ledger *ledger, struct rsb_handles **ret_handles)
{
	struct rsb_handles *handles = rsb_new(struct rsb_handles);

	if (!handles)
		return -ENOMEM;
	handles->ledger = ledger;
	rsb_map_init(&handles->by_fh, RSB_FHS_MAX);
	*ret_handles = handles;
	return 0;
}

bool
rsb_handle_writes(const struct rsb_handle *handle)
{
	return (handle->flags & O_ACCMODE) != O_RDONLY;
}

uint64_t
rsb_handle_any_fh(const struct rsb_inode *inode)
{
	struct rsb_list *pos;

	if (!S_ISREG(inode->attr.mode))
		return 0;
	rsb_list_for_each (pos, &inode->handles) {
		const struct rsb_handle *handle = rsb_list_entry(pos, struct rsb_handle, of_inode);

		if (!handle->broken && !handle->closed && !handle->unconfirmed)
			return handle->fh;
	}
	return 0;
}

static void
handle_free(struct rsb_handles *handles, struct rsb_handle *handle)
{
	struct rsb_inode *inode = handle->inode;

	rsb_lockset_drop_handle(handle);
	rsb_ledger_end_handle(handles->ledger, handle->shared);
	rsb_list_remove(&handle->of_inode);
	inode->n_open--;
	if (rsb_handle_writes(handle))
		inode->n_writer--;
	if (inode->dirty == handle)
		inode->dirty = NULL;
	rsb_wbuf_done(&handle->wbuf);
	rsb_ahead_free(handle->ahead);
	rsb_guard_view_unref(handle->view);
	rsb_dirsnap_free(handle->snap);
	free(handle);
	rsb_inode_unref(inode);
}

void
rsb_handles_free(struct rsb_handles *handles)
{
	struct rsb_handle *handle;
	size_t cursor = 0;

	if (!handles)
		return;
	while ((handle = rsb_map_next(&handles->by_fh, &cursor, NULL)))
		handle_free(handles, handle);
	rsb_map_done(&handles->by_fh);
	free(handles);
}

/* shared: its entry. */
static int
handle_new(struct rsb_handles *handles, struct rsb_inode *inode, struct rsb_shared_handle *shared,
	struct rsb_handle **ret_handle)
{
	struct rsb_handle *handle = rsb_new(struct rsb_handle);
	int flags = shared->flags;
	int r;

	if (!handle)
		return -ENOMEM;
	r = rsb_map_put(&handles->by_fh, shared->fh, handle);
	if (r < 0) {
		free(handle);
		return r == -ENOSPC ? -ENFILE : r;
	}
	handle->shared = shared;
	handle->fh = shared->fh;
	handle->flags = flags;
	handle->n_ref = 1;
	handle->inode = rsb_inode_ref(inode);
	handle->epoch = inode->epoch;
	rsb_list_init(&handle->drains);
	rsb_list_init(&handle->readers);
	rsb_list_init(&handle->of_inode);
	rsb_wbuf_init(&handle->wbuf, flags & O_APPEND);
	rsb_list_append(&inode->handles, &handle->of_inode);
	inode->n_open++;
	if (rsb_handle_writes(handle))
		inode->n_writer++;
	*ret_handle = handle;
	return 0;
}

int
rsb_handle_open(struct rsb_handles *handles, struct rsb_inode *inode, uint64_t fh, int flags,
	struct rsb_handle **ret_handle)
{
	const struct rsb_shared_handle from = {
		.flags = flags,
		.fh = fh,
		.nodeid = inode->nodeid,
		.opening = 1,
	};
	struct rsb_handle *handle = rsb_map_get(&handles->by_fh, fh);
	struct rsb_shared_handle *shared;
	int r;

	if (handle && handle->inode == inode) {
		handle->broken = handle->shared->broken;
		*ret_handle = handle;
		return 0;
	}
	r = rsb_ledger_handle(handles->ledger, &from, &shared);
	if (r < 0)
		return r;
	r = handle_new(handles, inode, shared, ret_handle);
	if (r < 0)
		rsb_ledger_end_handle(handles->ledger, shared);
	return r;
}

/* ---- after a crash ---- */

static int
restore(struct rsb_handles *handles, struct rsb_inodes *inodes, struct rsb_dirsnaps *listings,
	struct rsb_shared_handle *shared)
{
	struct rsb_inode *inode = rsb_inode_by_nodeid(inodes, shared->nodeid);
	struct rsb_handle *handle;
	int r;

	/* It was on its way out: files hold their nodes. */
	if (!inode) {
		rsb_ledger_end_handle(handles->ledger, shared);
		return 0;
	}
	r = handle_new(handles, inode, shared, &handle);
	if (r < 0)
		return r;
	handle->error = shared->error;
	handle->broken = shared->broken;
	handle->closed = shared->closed;
	handle->posix_locks = shared->posix_locks;
	handle->flocks = shared->flocks;
	rsb_lockset_restore(handle);
	handle->kill_suidgid = shared->kill_suidgid;
	r = rsb_log_restore(rsb_ledger_arena(handles->ledger), handle, listings);
	if (r < 0)
		rsb_handle_set_error(handle, -EIO);
	if (handle->wbuf.size)
		inode->dirty = handle;
	return 0;
}

int
rsb_handles_restore(
	struct rsb_handles *handles, struct rsb_inodes *inodes, struct rsb_dirsnaps *listings)
{
	struct rsb_shared *shared = rsb_ledger_arena(handles->ledger)->shared;
	int r = 0;

	for (uint32_t i = 0; i < shared->head.n_handle && r >= 0; i++) {
		if (shared->handles[i].state)
			r = restore(handles, inodes, listings, &shared->handles[i]);
	}
	return r;
}

void
rsb_handles_sweep(struct rsb_handles *handles)
{
	struct rsb_handle *handle;
	size_t cursor = 0;

	while ((handle = rsb_map_next(&handles->by_fh, &cursor, NULL))) {
		if (handle->n_ref == 1 && handle->shared->opening)
			rsb_handle_unref(handles, handle);
	}
}

void
rsb_handles_drop_closed(struct rsb_handles *handles)
{
	struct rsb_handle *handle;
	size_t cursor = 0;

	while ((handle = rsb_map_next(&handles->by_fh, &cursor, NULL))) {
		if (handle->closed)
			rsb_handle_unref(handles, handle);
	}
}

struct rsb_handle *
rsb_handle_get(const struct rsb_handles *handles, uint64_t fh)
{
	return rsb_map_get(&handles->by_fh, fh);
}

struct rsb_handle *
rsb_handle_ref(struct rsb_handle *handle)
{
	handle->n_ref++;
	return handle;
}

void
rsb_handle_unref(struct rsb_handles *handles, struct rsb_handle *handle)
{
	if (--handle->n_ref)
		return;
	(void)rsb_map_del(&handles->by_fh, handle->fh);
	handle_free(handles, handle);
}

size_t
rsb_handles_count(const struct rsb_handles *handles)
{
	return handles->by_fh.n;
}

struct rsb_handle *
rsb_handle_next(const struct rsb_handles *handles, size_t *cursor)
{
	return rsb_map_next(&handles->by_fh, cursor, NULL);
}

int
rsb_handle_take_error(struct rsb_handle *handle)
{
	int r = handle->error;

	/* Not in shared: killed before it was told it would never be. So it may be told twice. */
	handle->error = 0;
	handle->error_shown = false;
	return r;
}

int
rsb_handle_show_error(struct rsb_handle *handle)
{
	if (!handle->error || handle->error_shown)
		return rsb_handle_take_error(handle);
	handle->error_shown = true;
	return handle->error;
}

void
rsb_handle_set_error(struct rsb_handle *handle, int error)
{
	handle->error = error;
	handle->shared->error = error;
}

void
rsb_handle_set_broken(struct rsb_handle *handle, int broken)
{
	handle->broken = broken;
	handle->shared->broken = broken;
}

void
rsb_handle_set_closed(struct rsb_handle *handle)
{
	handle->closed = true;
	handle->shared->closed = 1;
}

void
rsb_handle_set_locks(struct rsb_handle *handle, bool posix_locks, bool flocks)
{
	handle->posix_locks |= posix_locks;
	handle->flocks |= flocks;
	handle->shared->posix_locks = handle->posix_locks;
	handle->shared->flocks = handle->flocks;
}

void
rsb_handle_set_kill(struct rsb_handle *handle, bool kill_suidgid)
{
	handle->kill_suidgid = kill_suidgid;
	handle->shared->kill_suidgid = kill_suidgid;
}

void
rsb_handle_set_told(struct rsb_handle *handle)
{
	handle->shared->opening = 0;
}
