/* SPDX-License-Identifier: MIT */
#ifndef RSB_MP_H
#define RSB_MP_H

/*
 * A bounded MessagePack cursor: reads one value at a time out of bytes of a peer, never allocates,
 * checks every length and count against the bytes that are left before it believes them, and limits
 * nesting when it skips. (msgpack-c's object tree believes counts: the five bytes dd 07 ff ff ff
 * made it reserve 4 GiB. msgpack-c packs, this reads.)
 * https://github.com/msgpack/msgpack/blob/master/spec.md
 */

#include "util/buf.h"

#define RSB_MP_DEPTH_MAX 16

struct rsb_mp {
	const uint8_t *pos;
	const uint8_t *end;
};

static inline void
rsb_mp_init(struct rsb_mp *mp, struct rsb_bytes bytes)
{
	mp->pos = bytes.data;
	mp->end = bytes.size ? bytes.data + bytes.size : bytes.data;
}

static inline size_t
rsb_mp_left(const struct rsb_mp *mp)
{
	return (size_t)(mp->end - mp->pos);
}

/* All: 0, or -EBADMSG (cut, or another type) with the cursor where it was. */

/* Any unsigned encoding, or a signed one that is not negative. */
rsb_nodiscard int rsb_mp_u64(struct rsb_mp *mp, uint64_t *ret_value);
rsb_nodiscard int rsb_mp_i64(struct rsb_mp *mp, int64_t *ret_value);
/* str or bin of at most max bytes (-EMSGSIZE over that); a view. */
rsb_nodiscard int rsb_mp_bytes(struct rsb_mp *mp, size_t max, struct rsb_bytes *ret_bytes);
/* Array head. The count is at most the number of bytes left (every element takes one). */
rsb_nodiscard int rsb_mp_array(struct rsb_mp *mp, uint32_t *ret_n);
/* One whole value of any type. */
rsb_nodiscard int rsb_mp_skip(struct rsb_mp *mp);

#endif
