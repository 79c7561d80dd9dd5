/* SPDX-License-Identifier: MIT */
#include "fuse/gitmarks.h"

#include "fuse/seen.h"

#define N_PROBE 4u

/* As in util/map.c: the finaliser of splitmix64. */
static uint64_t
mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t
add_name(uint64_t hash, struct rsb_bytes name)
{
	/* FNV-1a, and an end that no byte of the next name makes up for. */
	for (size_t i = 0; i < name.size; i++)
		hash = (hash ^ name.data[i]) * UINT64_C(0x100000001b3);
	return mix(hash + 1);
}

/* From its end up. A hostile collision would be a mark too much, which it can have for less. */
static bool
hash_place(const struct rsb_gitmarks_place *place, uint64_t *ret_hash)
{
	const struct rsb_inode *dir = place->dir;
	const struct rsb_inode *root = rsb_inode_root(dir->set);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	struct rsb_inode *parent;

	for (size_t n = place->n; n; n--)
		hash = add_name(hash, place->names[n - 1]);
	for (size_t n = 0; dir != root; n++) {
		const char *name = n < RSB_SEEN_DEPTH_MAX ? rsb_seen_last(dir, &parent) : NULL;

		if (!name)
			return false;
		hash = add_name(hash, rsb_bytes_str(name));
		dir = parent;
	}
	*ret_hash = hash;
	return true;
}

/* Number i of the bits in which mark of a place is kept. */
static uint32_t
bit_of(uint64_t hash, uint32_t mark, uint32_t i)
{
	const uint64_t first = mix(hash ^ mark);

	return (uint32_t)(first + i * (mix(first) | 1)) % RSB_SHARED_MARK_BITS;
}

static bool
has(const uint8_t *bits, uint64_t hash, uint32_t mark)
{
	for (uint32_t i = 0; i < N_PROBE; i++) {
		const uint32_t bit = bit_of(hash, mark, i);

		if (!(bits[bit / 8] & 1u << bit % 8))
			return false;
	}
	return true;
}

void
rsb_gitmarks_note(const struct rsb_gitmarks_place *place, uint32_t marks)
{
	uint8_t *bits = rsb_inodes_shared(place->dir->set)->git_marks;
	uint64_t hash;

	/* Where nobody knows it has them all anyway, and is a place again when it was seen. */
	if (!marks || !hash_place(place, &hash))
		return;
	for (; marks; marks &= marks - 1) {
		for (uint32_t i = 0; i < N_PROBE; i++) {
			const uint32_t bit = bit_of(hash, marks & -marks, i);

			bits[bit / 8] |= (uint8_t)(1u << bit % 8);
		}
	}
}

uint32_t
rsb_gitmarks_of(const struct rsb_gitmarks_place *place, uint32_t marks)
{
	const uint8_t *bits = rsb_inodes_shared(place->dir->set)->git_marks;
	uint32_t found = 0;
	uint64_t hash;

	if (!hash_place(place, &hash))
		return marks;
	for (; marks; marks &= marks - 1) {
		if (has(bits, hash, marks & -marks))
			found |= marks & -marks;
	}
	return found;
}
