/* SPDX-License-Identifier: MIT */
#include "fuse/handle.h"

#include <errno.h>
#include <fcntl.h>

#include "fuse/ahead.h"
#include "fuse/guard.h"

struct rsb_handles {
	struct rsb_map by_fh;
};

int
rsb_handles_new(struct rsb_handles **ret_handles)
{
	struct rsb_handles *handles = rsb_new(struct rsb_handles);

	if (!handles)
		return -ENOMEM;
	rsb_map_init(&handles->by_fh, RSB_FHS_MAX);
	*ret_handles = handles;
	return 0;
}

bool
rsb_handle_writes(const struct rsb_handle *handle)
{
	return (handle->flags & O_ACCMODE) != O_RDONLY;
}

static void
handle_free(struct rsb_handle *handle)
{
	struct rsb_inode *inode = handle->inode;

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
		handle_free(handle);
	rsb_map_done(&handles->by_fh);
	free(handles);
}

int
rsb_handle_open(struct rsb_handles *handles, struct rsb_inode *inode, uint64_t fh, int flags,
	struct rsb_handle **ret_handle)
{
	struct rsb_handle *handle = rsb_new(struct rsb_handle);
	int r;

	if (!handle)
		return -ENOMEM;
	r = rsb_map_put(&handles->by_fh, fh, handle);
	if (r < 0) {
		free(handle);
		return r == -ENOSPC ? -ENFILE : r;
	}
	handle->fh = fh;
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
	handle_free(handle);
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

	handle->error = 0;
	return r;
}
