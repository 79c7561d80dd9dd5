/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <string.h>

#include <msgpack.h>

#include "proto/mp.h"
#include "tests/prop/rng.h"
#include "tests/unit/bytes.h"
#include "tests/unit/unit.h"

/* msgpack-c reads the same documents as the cursor and must see the same in them. */

static struct rng rng;

static int
append(void *out, const char *data, size_t size)
{
	return rsb_buf_append(out, data, size);
}

static void pack_random(msgpack_packer *pk, int depth);

static void
pack_blob(msgpack_packer *pk, size_t kind)
{
	static char data[70000];
	const size_t size =
		rng_below(&rng, 50) ? rng_below(&rng, 300) : rng_below(&rng, sizeof(data));

	data[0] = (char)rng_u64(&rng);
	if (kind == 0) {
		msgpack_pack_str(pk, size);
		msgpack_pack_str_body(pk, data, size);
	} else if (kind == 1) {
		msgpack_pack_bin(pk, size);
		msgpack_pack_bin_body(pk, data, size);
	} else {
		msgpack_pack_ext(pk, size, (int8_t)rng_u64(&rng));
		msgpack_pack_ext_body(pk, data, size);
	}
}

static void
pack_list(msgpack_packer *pk, int depth)
{
	const bool map = rng_below(&rng, 2);
	const size_t n = rng_below(&rng, 20) ? rng_below(&rng, 5) : rng_below(&rng, 100);

	if (map)
		msgpack_pack_map(pk, n);
	else
		msgpack_pack_array(pk, n);
	for (size_t i = 0; i < (map ? 2 * n : n); i++)
		pack_random(pk, n > 5 ? 0 : depth - 1);
}

static void
pack_random(msgpack_packer *pk, int depth)
{
	const size_t kind = rng_below(&rng, depth > 0 ? 12 : 9);

	switch (kind) {
	case 0:
	case 1:
	case 2:
		pack_blob(pk, kind);
		return;
	case 3:
		msgpack_pack_nil(pk);
		return;
	case 4:
		if (rng_below(&rng, 2))
			msgpack_pack_true(pk);
		else
			msgpack_pack_false(pk);
		return;
	case 5:
		msgpack_pack_float(pk, (float)rng_below(&rng, 1000));
		return;
	case 6:
		msgpack_pack_double(pk, (double)rng_below(&rng, 1000));
		return;
	case 7:
		msgpack_pack_uint64(pk, rng_magnitude(&rng));
		return;
	case 8:
		msgpack_pack_int64(pk, (int64_t)-rng_magnitude(&rng));
		return;
	default:
		pack_list(pk, depth);
	}
}

/* The cursor, one value of any type, against the object that msgpack-c made of the same bytes. */
static void
compare(struct rsb_mp *mp, const msgpack_object *object)
{
	struct rsb_bytes bytes;
	uint64_t u64 = 0;
	int64_t i64 = 0;
	uint32_t n;
	struct rsb_mp u = *mp, i = *mp, b = *mp, a = *mp;
	const int ru = rsb_mp_u64(&u, &u64);
	const int ri = rsb_mp_i64(&i, &i64);
	const int rb = rsb_mp_bytes(&b, SIZE_MAX, &bytes);
	const int ra = rsb_mp_array(&a, &n);

	ck_assert_int_eq(ru == 0, object->type == MSGPACK_OBJECT_POSITIVE_INTEGER);
	ck_assert_int_eq(ri == 0, object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ||
					  (object->type == MSGPACK_OBJECT_POSITIVE_INTEGER &&
						  object->via.u64 <= INT64_MAX));
	ck_assert_int_eq(
		rb == 0, object->type == MSGPACK_OBJECT_STR || object->type == MSGPACK_OBJECT_BIN);
	ck_assert_int_eq(ra == 0, object->type == MSGPACK_OBJECT_ARRAY);
	if (ru == 0)
		ck_assert_uint_eq(u64, object->via.u64);
	if (ri == 0)
		ck_assert_int_eq(i64, object->via.i64);
	if (rb == 0)
		ck_assert(
			bytes_equal(bytes, (struct rsb_bytes){ (const uint8_t *)object->via.bin.ptr,
						   object->via.bin.size }));
	if (ra != 0) {
		ck_assert_int_eq(rsb_mp_skip(mp), 0);
		return;
	}
	*mp = a;
	ck_assert_uint_eq(n, object->via.array.size);
	for (uint32_t e = 0; e < n; e++)
		compare(mp, &object->via.array.ptr[e]);
}

/* A random document, in storage of just its size. */
static struct rsb_bytes
document(int depth)
{
	struct rsb_buf out = { .max = 0 };
	msgpack_packer pk;
	struct rsb_bytes doc;

	msgpack_packer_init(&pk, &out, append);
	pack_random(&pk, depth);
	doc = bytes_cut(rsb_buf_view(&out), rsb_buf_len(&out));
	rsb_buf_done(&out);
	return doc;
}

static msgpack_unpack_return
oracle(struct rsb_bytes doc, size_t *off, msgpack_unpacked *ret)
{
	msgpack_unpacked_init(ret);
	*off = 0;
	return msgpack_unpack_next(ret, (const char *)doc.data, doc.size, off);
}

START_TEST(sees_what_msgpack_c_sees)
{
	for (int round = 0; round < 3000; round++) {
		struct rsb_bytes doc = document(round % 6);
		msgpack_unpacked unpacked;
		struct rsb_mp mp;
		size_t off;

		ck_assert_int_eq(oracle(doc, &off, &unpacked), MSGPACK_UNPACK_SUCCESS);
		rsb_mp_init(&mp, doc);
		compare(&mp, &unpacked.data);
		ck_assert_uint_eq(rsb_mp_left(&mp), 0);
		rsb_mp_init(&mp, doc);
		ck_assert_int_eq(rsb_mp_skip(&mp), 0);
		ck_assert_uint_eq(rsb_mp_left(&mp), 0);
		msgpack_unpacked_destroy(&unpacked);
		bytes_free(doc);
	}
}
END_TEST

START_TEST(takes_no_truncated_document)
{
	for (int round = 0; round < 200; round++) {
		struct rsb_bytes doc = document(3);

		for (size_t size = 0; size < doc.size; size += 1 + doc.size / 100) {
			struct rsb_bytes cut = bytes_cut(doc, size);
			struct rsb_mp mp;

			rsb_mp_init(&mp, cut);
			ck_assert_int_lt(rsb_mp_skip(&mp), 0);
			bytes_free(cut);
		}
		bytes_free(doc);
	}
}
END_TEST

/*
 * What the cursor accepts, msgpack-c accepts to the same byte. The other way round is not asked:
 * before it refuses a count, msgpack-c would have reserved it.
 */
START_TEST(takes_no_damaged_document_that_msgpack_c_refuses)
{
	size_t n_accepted = 0;

	for (int round = 0; round < 20000; round++) {
		struct rsb_bytes doc = document(3);
		uint8_t *data = (uint8_t *)(uintptr_t)doc.data;
		msgpack_unpacked unpacked;
		struct rsb_mp mp;
		size_t off;

		for (size_t i = rng_below(&rng, 4); i > 0; i--)
			data[rng_below(&rng, doc.size)] = (uint8_t)rng_u64(&rng);
		rsb_mp_init(&mp, doc);
		if (rsb_mp_skip(&mp) == 0) {
			const msgpack_unpack_return r = oracle(doc, &off, &unpacked);

			n_accepted++;
			ck_assert(r == MSGPACK_UNPACK_SUCCESS || r == MSGPACK_UNPACK_EXTRA_BYTES);
			ck_assert_uint_eq(off, doc.size - rsb_mp_left(&mp));
			msgpack_unpacked_destroy(&unpacked);
		}
		bytes_free(doc);
	}
	ck_assert_uint_gt(n_accepted, 1000);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		sees_what_msgpack_c_sees,
		takes_no_truncated_document,
		takes_no_damaged_document_that_msgpack_c_refuses,
	};

	rng_init(&rng);
	return unit_run("mp", tests, RSB_ARRAY_SIZE(tests));
}
