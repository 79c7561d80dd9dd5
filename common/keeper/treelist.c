/* SPDX-License-Identifier: MIT */
#include "keeper/treelist.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/codec.h"
#include "proto/limits.h"
#include "util/cleanup.h"
#include "util/str.h"

#define HEAD_SIZE 4u
#define RECORD_MAX ((size_t)16 << 10) /* two paths and some numbers */

void
rsb_treelist_init(struct rsb_treelist *list, struct rsb_tree *tree)
{
	*list = (struct rsb_treelist){ .tree = tree };
	rsb_buf_init(&list->rest, 2 * RSB_FRAME_MAX + RECORD_MAX);
}

void
rsb_treelist_done(struct rsb_treelist *list)
{
	rsb_buf_done(&list->rest);
}

/* Nothing but names between slashes; ret_parent: the size of the directory's path. */
static bool
is_path(struct rsb_bytes path, size_t *ret_parent)
{
	size_t start = 0;

	for (size_t i = 0; i <= path.size; i++) {
		if (i < path.size && path.data[i] != '/')
			continue;
		if (!rsb_str_is_component(
			    (struct rsb_bytes){ .data = path.data + start, .size = i - start }))
			return false;
		*ret_parent = start ? start - 1 : 0;
		start = i + 1;
	}
	return true;
}

static int
check_parent(const struct rsb_treelist *list, const char *path, size_t size)
{
	rsb_autofree char *parent = strndup(path, size);
	const struct rsb_tree_leaf *leaf;

	if (!parent)
		return -ENOMEM;
	if (!size)
		return 0;
	leaf = rsb_tree_find(list->tree, parent);
	if (list->partial && (!leaf || !leaf->mode))
		return 0;
	return rsb_tree_leaf_is(leaf, S_IFDIR) ? 0 : -EBADMSG;
}

static int64_t
to_ns(const struct rsb_time *time)
{
	return rsb_tree_ns(time->sec, (int64_t)rsb_min(time->nsec, (uint64_t)INT64_MAX));
}

static int
take(struct rsb_treelist *list, struct rsb_bytes record)
{
	rsb_autofree char *path = NULL;
	rsb_autofree char *target = NULL;
	struct rsb_tree_leaf leaf = { 0 };
	struct rsb_leaf from;
	size_t parent = 0;
	int r;

	r = rsb_codec_decode(&rsb_desc_rsb_leaf, record, &from);
	if (r < 0 || !is_path(from.path, &parent) ||
		(from.target.size && memchr(from.target.data, 0, from.target.size)))
		return -EBADMSG;
	path = rsb_str_dup(from.path);
	target = rsb_str_dup(from.target);
	if (!path || !target)
		return -ENOMEM;
	/* What went may have been in a directory that is none any more. */
	r = from.mode || !list->partial ? check_parent(list, path, parent) : 0;
	if (r < 0)
		return r;
	leaf.path = path;
	leaf.target = target;
	leaf.mode = (uint32_t)(from.mode & (S_IFMT | 01777));
	leaf.size = from.size;
	leaf.blind = from.error != 0;
	leaf.there = (struct rsb_stamp){
		.mtime_ns = to_ns(&from.mtime), .ctime_ns = to_ns(&from.ctime), .ino = from.ino
	};
	return leaf.mode || list->partial ? rsb_tree_add(list->tree, &leaf) : -EBADMSG;
}

int
rsb_treelist_feed(struct rsb_treelist *list, struct rsb_bytes data)
{
	while (data.size) {
		size_t n = rsb_min(data.size, (size_t)RSB_FRAME_MAX);
		int r = rsb_buf_append(&list->rest, data.data, n);

		data.data += n;
		data.size -= n;
		while (r >= 0 && rsb_buf_len(&list->rest) >= HEAD_SIZE) {
			const uint8_t *head = rsb_buf_head(&list->rest);
			size_t size = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 |
				      (size_t)head[3] << 24;

			if (size > RECORD_MAX)
				return -EBADMSG;
			if (rsb_buf_len(&list->rest) < HEAD_SIZE + size)
				break;
			r = take(
				list, (struct rsb_bytes){ .data = head + HEAD_SIZE, .size = size });
			rsb_buf_consume(&list->rest, HEAD_SIZE + size);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int
rsb_treelist_end(const struct rsb_treelist *list)
{
	return rsb_buf_len(&list->rest) ? -EBADMSG : 0;
}

int
rsb_treelist_check_whole(const struct rsb_treelist *list)
{
	const struct rsb_treelist whole = { .tree = list->tree };
	int r = 0;

	for (size_t i = 0; i < list->tree->n && r >= 0; i++) {
		const char *path = list->tree->leaves[i].path;
		const char *slash = strrchr(path, '/');

		r = list->tree->leaves[i].mode
			    ? check_parent(&whole, path, slash ? (size_t)(slash - path) : 0)
			    : -EBADMSG;
	}
	return r;
}
