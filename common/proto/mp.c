/* SPDX-License-Identifier: MIT */
#include "proto/mp.h"

#include <errno.h>

enum kind { BAD, PLAIN, UINT, INT, BYTES, EXT, ARRAY, MAP };

struct head {
	enum kind kind;
	uint64_t n; /* the number, the length or the count */
};

/* The tags 0xc0..0xdf of the specification; n_arg bytes follow the tag. */
static const struct {
	uint8_t kind;
	uint8_t n_arg;
} forms[32] = {
	[0x00] = { PLAIN, 0 }, /* nil */
	[0x02] = { PLAIN, 0 }, /* false, true */
	[0x03] = { PLAIN, 0 },
	[0x04] = { BYTES, 1 }, /* bin */
	[0x05] = { BYTES, 2 },
	[0x06] = { BYTES, 4 },
	[0x07] = { EXT, 1 },
	[0x08] = { EXT, 2 },
	[0x09] = { EXT, 4 },
	[0x0a] = { PLAIN, 4 }, /* float */
	[0x0b] = { PLAIN, 8 },
	[0x0c] = { UINT, 1 },
	[0x0d] = { UINT, 2 },
	[0x0e] = { UINT, 4 },
	[0x0f] = { UINT, 8 },
	[0x10] = { INT, 1 },
	[0x11] = { INT, 2 },
	[0x12] = { INT, 4 },
	[0x13] = { INT, 8 },
	[0x14] = { PLAIN, 2 }, /* fixext: its type, then 1, 2, 4, 8 or 16 bytes */
	[0x15] = { PLAIN, 3 },
	[0x16] = { PLAIN, 5 },
	[0x17] = { PLAIN, 9 },
	[0x18] = { PLAIN, 17 },
	[0x19] = { BYTES, 1 }, /* str */
	[0x1a] = { BYTES, 2 },
	[0x1b] = { BYTES, 4 },
	[0x1c] = { ARRAY, 2 },
	[0x1d] = { ARRAY, 4 },
	[0x1e] = { MAP, 2 },
	[0x1f] = { MAP, 4 },
};

static uint64_t
big_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

static uint64_t
sign_extend(uint64_t v, unsigned int n_bit)
{
	uint64_t sign = UINT64_C(1) << (n_bit - 1);

	return (v ^ sign) - sign;
}

/* Moves over a tag and what belongs to it, but not over content or elements. */
static int
take_head(struct rsb_mp *mp, struct head *ret_head)
{
	size_t left = rsb_mp_left(mp);
	const uint8_t *p = mp->pos;
	struct head h;
	size_t n_arg;
	uint8_t tag;

	if (left == 0)
		return -EBADMSG;
	tag = *p++;
	n_arg = 0;
	if (tag < 0x80) {
		h = (struct head){ UINT, tag };
	} else if (tag < 0x90) {
		h = (struct head){ MAP, tag & 0x0f };
	} else if (tag < 0xa0) {
		h = (struct head){ ARRAY, tag & 0x0f };
	} else if (tag < 0xc0) {
		h = (struct head){ BYTES, tag & 0x1f };
	} else if (tag >= 0xe0) {
		h = (struct head){ INT, sign_extend(tag, 8) };
	} else {
		h.kind = (enum kind)forms[tag & 0x1f].kind;
		n_arg = forms[tag & 0x1f].n_arg;
		if (h.kind == BAD || n_arg > left - 1)
			return -EBADMSG;
		h.n = h.kind == PLAIN ? 0 : big_endian(p, n_arg);
		if (h.kind == INT)
			h.n = sign_extend(h.n, (unsigned int)n_arg * 8);
	}
	mp->pos = p + n_arg;
	*ret_head = h;
	return 0;
}

int
rsb_mp_u64(struct rsb_mp *mp, uint64_t *ret_value)
{
	struct rsb_mp at = *mp;
	struct head h;
	int r;

	r = take_head(&at, &h);
	if (r < 0)
		return r;
	if (h.kind != UINT && (h.kind != INT || h.n > INT64_MAX))
		return -EBADMSG;
	*mp = at;
	*ret_value = h.n;
	return 0;
}

int
rsb_mp_i64(struct rsb_mp *mp, int64_t *ret_value)
{
	struct rsb_mp at = *mp;
	struct head h;
	int r;

	r = take_head(&at, &h);
	if (r < 0)
		return r;
	if (h.kind != INT && (h.kind != UINT || h.n > INT64_MAX))
		return -EBADMSG;
	*mp = at;
	*ret_value = (int64_t)h.n;
	return 0;
}

int
rsb_mp_bytes(struct rsb_mp *mp, size_t max, struct rsb_bytes *ret_bytes)
{
	struct rsb_mp at = *mp;
	struct head h;
	int r;

	r = take_head(&at, &h);
	if (r < 0)
		return r;
	if (h.kind != BYTES || h.n > rsb_mp_left(&at))
		return -EBADMSG;
	if (h.n > max)
		return -EMSGSIZE;
	*ret_bytes = (struct rsb_bytes){ .data = at.pos, .size = (size_t)h.n };
	mp->pos = at.pos + h.n;
	return 0;
}

int
rsb_mp_array(struct rsb_mp *mp, uint32_t *ret_n)
{
	struct rsb_mp at = *mp;
	struct head h;
	int r;

	r = take_head(&at, &h);
	if (r < 0)
		return r;
	if (h.kind != ARRAY || h.n > rsb_mp_left(&at))
		return -EBADMSG;
	*mp = at;
	*ret_n = (uint32_t)h.n;
	return 0;
}

/* Moves over one value; *ret_n is the number of values that it says are inside, and follow. */
static int
skip_one(struct rsb_mp *mp, uint64_t *ret_n)
{
	uint64_t n_byte = 0;
	uint64_t n = 0;
	struct head h;
	int r;

	r = take_head(mp, &h);
	if (r < 0)
		return r;
	if (h.kind == BYTES)
		n_byte = h.n;
	else if (h.kind == EXT)
		n_byte = h.n + 1; /* its type */
	else if (h.kind == ARRAY)
		n = h.n;
	else if (h.kind == MAP)
		n = h.n * 2;
	if (n_byte > rsb_mp_left(mp) || n > rsb_mp_left(mp))
		return -EBADMSG;
	mp->pos += n_byte;
	*ret_n = n;
	return 0;
}

int
rsb_mp_skip(struct rsb_mp *mp)
{
	uint64_t open[RSB_MP_DEPTH_MAX]; /* values still to come at each depth */
	struct rsb_mp at = *mp;
	size_t depth = 0;
	uint64_t n;
	int r;

	do {
		r = skip_one(&at, &n);
		if (r < 0)
			return r;
		if (n > 0) {
			if (depth == RSB_MP_DEPTH_MAX)
				return -EBADMSG;
			open[depth++] = n;
			continue;
		}
		while (depth > 0 && --open[depth - 1] == 0)
			depth--;
	} while (depth > 0);
	*mp = at;
	return 0;
}
