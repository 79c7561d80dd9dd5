/* SPDX-License-Identifier: MIT */
#include "fuse/gitmarks.h"

#include "util/mix.h"

#define N_PROBE 4u

/* The names on the way to dir, its own first. SIZE_MAX: nobody knows it. */
static size_t
names_up(const struct rsb_inode *dir, const char *names[RSB_SEEN_DEPTH_MAX])
{
	const struct rsb_inode *root = rsb_inode_root(dir->set);
	struct rsb_inode *parent;
	size_t n = 0;

	for (; dir != root; dir = parent) {
		const char *name = n < RSB_SEEN_DEPTH_MAX ? rsb_seen_last(dir, &parent) : NULL;

		if (!name)
			return SIZE_MAX;
		names[n++] = name;
	}
	return n;
}

size_t
rsb_gitmarks_way(const struct rsb_inode *dir, uint64_t ret_paths[RSB_GITMARKS_WAY_MAX])
{
	const char *names[RSB_SEEN_DEPTH_MAX];
	size_t left = names_up(dir, names);
	size_t n = 0;

	if (left == SIZE_MAX)
		return 0;
	ret_paths[n++] = rsb_inodes_shared(dir->set)->git_salt;
	for (; left; left--, n++)
		ret_paths[n] = rsb_gitmarks_below(ret_paths[n - 1], rsb_bytes_str(names[left - 1]));
	return n;
}

uint64_t
rsb_gitmarks_path(const struct rsb_inode *dir)
{
	const char *names[RSB_SEEN_DEPTH_MAX];
	size_t n = names_up(dir, names);
	uint64_t path = rsb_inodes_shared(dir->set)->git_salt;

	if (n == SIZE_MAX)
		return 0;
	while (n--)
		path = rsb_gitmarks_below(path, rsb_bytes_str(names[n]));
	return path;
}

uint64_t
rsb_gitmarks_below(uint64_t path, struct rsb_bytes name)
{
	/* The end of a name is one that no byte of the next makes up for. */
	return path ? rsb_mix_u64(rsb_mix_bytes(path, name) + 1) : 0;
}

/* Number i of the bits in which mark of a place is kept. */
static uint32_t
bit_of(uint64_t path, uint32_t mark, uint32_t i)
{
	const uint64_t first = rsb_mix_u64(path ^ mark);

	return (uint32_t)(first + i * (rsb_mix_u64(first) | 1)) % RSB_SHARED_MARK_BITS;
}

static bool
has(const uint8_t *bits, uint64_t path, uint32_t mark)
{
	for (uint32_t i = 0; i < N_PROBE; i++) {
		const uint32_t bit = bit_of(path, mark, i);

		if (!(bits[bit / 8] & 1u << bit % 8))
			return false;
	}
	return true;
}

void
rsb_gitmarks_note(const struct rsb_inodes *inodes, uint64_t path, uint32_t marks)
{
	uint8_t *bits = rsb_inodes_shared(inodes)->git_marks;

	/* Where nobody knows it has them all anyway, and is a place again when it was seen. */
	if (!path)
		return;
	for (; marks; marks &= marks - 1) {
		for (uint32_t i = 0; i < N_PROBE; i++) {
			const uint32_t bit = bit_of(path, marks & -marks, i);

			bits[bit / 8] |= (uint8_t)(1u << bit % 8);
		}
	}
}

uint32_t
rsb_gitmarks_of(const struct rsb_inodes *inodes, uint64_t path, uint32_t marks)
{
	const uint8_t *bits = rsb_inodes_shared(inodes)->git_marks;
	uint32_t found = 0;

	if (!path)
		return marks;
	for (; marks; marks &= marks - 1) {
		if (has(bits, path, marks & -marks))
			found |= marks & -marks;
	}
	return found;
}
