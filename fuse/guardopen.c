/* SPDX-License-Identifier: MIT */
#include "fuse/guardopen.h"

#include <errno.h>
#include <string.h>

#include "fuse/guard.h"
#include "fuse/ledger.h"
#include "fuse/log.h"

/* Without a view: it did not survive a crash. What of it is mapped stays mapped. */
static bool
shows(const struct rsb_handle *handle)
{
	return !handle->closed && (handle->view || handle->shared->viewed);
}

/* The first of inode, but for except; NULL: there is none. */
static const struct rsb_handle *
first_that_shows(const struct rsb_inode *inode, const struct rsb_handle *except)
{
	struct rsb_list *pos;

	rsb_list_for_each (pos, &inode->handles) {
		const struct rsb_handle *handle = rsb_list_entry(pos, struct rsb_handle, of_inode);

		if (handle != except && shows(handle))
			return handle;
	}
	return NULL;
}

static bool
is_same(const struct rsb_guard_view *a, const struct rsb_guard_view *b)
{
	return a == b || (a->size == b->size && memcmp(a->data, b->data, a->size) == 0);
}

static bool
has_room(const struct rsb_fs *fs, size_t size)
{
	size_t left = RSB_GUARDOPEN_MAX;
	const struct rsb_handle *handle;
	size_t cursor = 0;

	if (size > RSB_GITALLOW_MAX)
		left -= RSB_GUARDOPEN_SMALL_MAX;
	while (size <= left && (handle = rsb_handle_next(fs->handles, &cursor))) {
		/* Of one file all are the same. */
		if (handle->view && first_that_shows(handle->inode, NULL) == handle)
			left -= rsb_min(left, handle->view->size);
	}
	return size <= left;
}

int
rsb_guardopen_show(struct rsb_fs *fs, struct rsb_handle *handle, struct rsb_guard_view *view)
{
	const struct rsb_handle *other = first_that_shows(handle->inode, handle);
	int r = 0;

	/* Two reads of it were under way, and the other was first. */
	if (handle->view) {
		rsb_guard_view_unref(view);
		return 0;
	}
	if (!other && !has_room(fs, view->size))
		r = -ENFILE;
	else if (other && !(other->view && is_same(other->view, view)))
		r = -EBUSY;
	if (r < 0) {
		rsb_guard_view_unref(view);
		return r;
	}
	if (other) {
		rsb_guard_view_unref(view);
		view = other->view;
		view->n_ref++;
	}
	rsb_log_set_view(rsb_ledger_arena(fs->ledger), handle, view);
	return 0;
}

const struct rsb_guard_view *
rsb_guardopen_shown(const struct rsb_inode *inode)
{
	const struct rsb_handle *handle = first_that_shows(inode, NULL);

	return handle ? handle->view : NULL;
}

bool
rsb_guardopen_may_read(const struct rsb_handle *handle)
{
	return !first_that_shows(handle->inode, handle);
}
