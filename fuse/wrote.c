/* SPDX-License-Identifier: MIT */
#include "fuse/wrote.h"

#include <string.h>

#include "fuse/gitplace.h"

struct rsb_wrote {
	struct rsb_list age;
	struct rsb_fs *fs;
	struct rsb_inode *inode;
	struct rsb_buf text;
	uint64_t generation;
};

/* What one costs beside its text. */
#define SIZE_OF(wrote) (rsb_buf_len(&(wrote)->text) + sizeof(struct rsb_wrote))

void
rsb_wrote_drop(struct rsb_inode *inode)
{
	struct rsb_wrote *wrote = rsb_steal(&inode->wrote);

	if (!wrote)
		return;
	wrote->fs->wrote_size -= SIZE_OF(wrote);
	rsb_list_remove(&wrote->age);
	rsb_buf_done(&wrote->text);
	free(wrote);
}

/* After a change: the latest, and over the maximum the oldest go. */
static void
renew(struct rsb_fs *fs, struct rsb_wrote *wrote)
{
	wrote->generation = fs->cache.generation;
	rsb_list_remove(&wrote->age);
	rsb_list_append(&fs->wrotes, &wrote->age);
	while (fs->wrote_size > RSB_WROTE_BYTES_MAX)
		rsb_wrote_drop(rsb_list_entry(fs->wrotes.next, struct rsb_wrote, age)->inode);
}

void
rsb_wrote_begin(struct rsb_fs *fs, struct rsb_inode *inode, struct rsb_bytes text)
{
	struct rsb_wrote *wrote;

	rsb_wrote_drop(inode);
	if (!rsb_gitplace_is_near(inode) && !rsb_gitplace_matters(inode))
		return;
	wrote = rsb_new(struct rsb_wrote);
	if (!wrote)
		return;
	wrote->fs = fs;
	wrote->inode = inode;
	rsb_list_init(&wrote->age);
	rsb_buf_init(&wrote->text, RSB_GITALLOW_MAX);
	inode->wrote = wrote;
	fs->wrote_size += SIZE_OF(wrote);
	rsb_wrote_put(fs, inode, 0, text, false);
}

void
rsb_wrote_put(struct rsb_fs *fs, struct rsb_inode *inode, uint64_t offset, struct rsb_bytes data,
	bool append)
{
	struct rsb_wrote *wrote = inode->wrote;
	struct rsb_buf *text;
	size_t over;
	size_t at;

	if (!wrote)
		return;
	text = &wrote->text;
	at = (size_t)offset;
	if (offset > rsb_buf_len(text) || (append && offset != rsb_buf_len(text))) {
		rsb_wrote_drop(inode);
		return;
	}
	over = rsb_min(data.size, rsb_buf_len(text) - at);
	if (over)
		memcpy(text->data + text->off + at, data.data, over);
	if (data.size > over && rsb_buf_append(text, data.data + over, data.size - over) < 0) {
		rsb_wrote_drop(inode);
		return;
	}
	fs->wrote_size += data.size - over;
	renew(fs, wrote);
}

void
rsb_wrote_cut(struct rsb_fs *fs, struct rsb_inode *inode, uint64_t size)
{
	struct rsb_wrote *wrote = inode->wrote;

	if (size == 0) {
		rsb_wrote_begin(fs, inode, (struct rsb_bytes){ 0 });
	} else if (wrote && size <= rsb_buf_len(&wrote->text)) {
		fs->wrote_size -= rsb_buf_len(&wrote->text) - (size_t)size;
		wrote->text.size = wrote->text.off + (size_t)size;
		renew(fs, wrote);
	} else {
		rsb_wrote_drop(inode);
	}
}

bool
rsb_wrote_get(const struct rsb_inode *inode, struct rsb_bytes *ret_text)
{
	if (!inode->wrote)
		return false;
	*ret_text = rsb_buf_view(&inode->wrote->text);
	return true;
}

uint64_t
rsb_wrote_generation(const struct rsb_inode *inode)
{
	return inode->wrote ? inode->wrote->generation : 0;
}
