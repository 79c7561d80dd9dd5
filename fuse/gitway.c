/* SPDX-License-Identifier: MIT */
#include "fuse/gitway.h"

#include <limits.h>
#include <string.h>

#include "fuse/alias.h"
#include "fuse/gitmarks.h"
#include "fuse/seen.h"
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

/* There is no link on the way so far, or it is barred: so ".." takes a name back. */
static void
go_up(struct rsb_gitmarks_place *place)
{
	struct rsb_inode *parent;

	if (place->n)
		place->n--;
	else if (rsb_seen_last(place->dir, &parent))
		place->dir = parent;
}

void
rsb_gitway_lead(const struct rsb_inode *dir, const char *mountpoint, struct rsb_bytes path)
{
	struct rsb_bytes names[NAMES_MAX];
	struct rsb_gitmarks_place place = { .dir = dir, .names = names };
	const size_t n_root = strlen(mountpoint);

	if (path.size && path.data[0] == '/') {
		/* Others are not shown, but for what was trusted and is the user's own. */
		if (path.size < n_root || memcmp(path.data, mountpoint, n_root) != 0)
			return;
		path.data += n_root;
		path.size -= n_root;
		place.dir = rsb_inode_root(dir->set);
	}
	while (path.size) {
		const struct rsb_bytes name = next_name(&path);

		if (rsb_str_is(name, "..")) {
			go_up(&place);
		} else if (name.size && !rsb_str_is(name, ".") && place.n < NAMES_MAX) {
			names[place.n++] = name;
			rsb_gitmarks_note(&place, RSB_GITMARK_WAY);
		}
	}
	rsb_gitmarks_note(&place, RSB_GITMARK_REPOSITORY);
}

bool
rsb_gitway_is_over(const struct rsb_inode *dir, struct rsb_bytes name)
{
	const struct rsb_gitmarks_place place = { .dir = dir, .names = &name, .n = 1 };

	return rsb_gitmarks_of(&place, RSB_GITMARK_WAY);
}

bool
rsb_gitway_ends_at(const struct rsb_inode *dir, struct rsb_bytes name)
{
	const struct rsb_gitmarks_place place = { .dir = dir, .names = &name, .n = 1 };

	/* Or every file would be, where nobody knows where that is. */
	return rsb_gitmarks_of(&place, RSB_GITMARK_REPOSITORY | RSB_GITMARK_NOWHERE) ==
	       RSB_GITMARK_REPOSITORY;
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
