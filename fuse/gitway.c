/* SPDX-License-Identifier: MIT */
#include "fuse/gitway.h"

#include <limits.h>
#include <string.h>

#include "fuse/alias.h"
#include "fuse/gitmarks.h"
#include "util/str.h"

#define NAMES_MAX (PATH_MAX / 2)

static struct rsb_bytes
next_name(struct rsb_bytes *path)
{
	const uint8_t *slash = memchr(path->data, '/', path->size);
	const struct rsb_bytes name = {
		.data = path->data,
		.size = slash ? (size_t)(slash - path->data) : path->size,
	};

	path->data += name.size + (slash != NULL);
	path->size -= name.size + (slash != NULL);
	return name;
}

void
rsb_gitway_lead(const struct rsb_inode *dir, const char *mountpoint, struct rsb_bytes path)
{
	uint64_t paths[RSB_GITMARKS_WAY_MAX + NAMES_MAX];
	const size_t n_root = strlen(mountpoint);
	size_t n;

	if (path.size && path.data[0] == '/') {
		/* Others are not shown, but for what was trusted and is the user's own. */
		if (path.size < n_root || memcmp(path.data, mountpoint, n_root) != 0)
			return;
		path.data += n_root;
		path.size -= n_root;
		dir = rsb_inode_root(dir->set);
	}
	rsb_inodes_shared(dir->set)->git_led = 1;
	n = rsb_gitmarks_way(dir, paths);
	if (!n)
		return;
	while (path.size) {
		const struct rsb_bytes name = next_name(&path);

		/* There is no link on the way so far, or it is barred: ".." takes a name back. */
		if (rsb_str_is(name, "..")) {
			n -= n > 1;
		} else if (name.size && !rsb_str_is(name, ".") && n < RSB_ARRAY_SIZE(paths)) {
			paths[n] = rsb_gitmarks_below(paths[n - 1], name);
			rsb_gitmarks_note(dir->set, paths[n++], RSB_GITMARK_WAY);
		}
	}
	rsb_gitmarks_note(dir->set, paths[n - 1], RSB_GITMARK_REPOSITORY);
}

bool
rsb_gitway_is_over(const struct rsb_inode *dir, struct rsb_bytes name)
{
	return rsb_inodes_shared(dir->set)->git_led &&
	       rsb_gitmarks_of(
		       dir->set, rsb_gitmarks_below(rsb_gitmarks_path(dir), name), RSB_GITMARK_WAY);
}

bool
rsb_gitway_ends_at(const struct rsb_inode *dir, struct rsb_bytes name)
{
	uint64_t path;

	/* As for every file on a mount without any. */
	if (!rsb_inodes_shared(dir->set)->git_led)
		return false;
	path = rsb_gitmarks_below(rsb_gitmarks_path(dir), name);
	/* Or every file would be, where nobody knows where that is. */
	return path && rsb_gitmarks_of(dir->set, path, RSB_GITMARK_REPOSITORY);
}

bool
rsb_gitway_is_over_link(const struct rsb_inode *link)
{
	struct rsb_inode *dir;
	const char *name = rsb_seen_last(link, &dir);

	for (size_t i = 0; name; i++) {
		if (dir && rsb_gitway_is_over(dir, rsb_bytes_str(name)))
			return true;
		name = rsb_alias_get(link, i, &dir);
	}
	return false;
}
