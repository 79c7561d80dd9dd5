/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <zstd.h>

#include "proto/frame.h"
#include "proto/limits.h"
#include "tests/unit/bytes.h"
#include "tests/unit/unit.h"

/* The linker sends the module's allocations here (--wrap), so that a test can refuse them. */
static struct {
	bool calloc;
	bool malloc;
	bool compressor;
	bool decompressor;
} refuse;

void *__real_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
ZSTD_CCtx *__real_ZSTD_createCCtx(void);
ZSTD_DCtx *__real_ZSTD_createDCtx(void);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void);
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void);

void *
__wrap_calloc(size_t n, size_t size)
{
	return refuse.calloc ? NULL : __real_calloc(n, size);
}

void *
__wrap_malloc(size_t size)
{
	return refuse.malloc ? NULL : __real_malloc(size);
}

ZSTD_CCtx *
__wrap_ZSTD_createCCtx(void)
{
	return refuse.compressor ? NULL : __real_ZSTD_createCCtx();
}

ZSTD_DCtx *
__wrap_ZSTD_createDCtx(void)
{
	return refuse.decompressor ? NULL : __real_ZSTD_createDCtx();
}

static uint8_t runs[RSB_FRAME_MAX];  /* compresses well */
static uint8_t noise[RSB_FRAME_MAX]; /* does not */

static void
fill(void)
{
	uint32_t x = 1;

	for (size_t i = 0; i < sizeof(runs); i++) {
		x = x * 1664525 + 1013904223;
		noise[i] = (uint8_t)(x >> 24);
		runs[i] = (uint8_t)(i / 64);
	}
}

static struct rsb_zip *
new_zip(void)
{
	struct rsb_zip *zip;

	ck_assert_int_eq(rsb_zip_new(&zip), 0);
	return zip;
}

static struct rsb_bytes
head_of(uint8_t type, uint8_t flags)
{
	static uint8_t head[RSB_FRAME_HEAD];

	memset(head, 0, sizeof(head));
	head[0] = type;
	head[1] = flags;
	return (struct rsb_bytes){ head, sizeof(head) };
}

START_TEST(has_a_big_endian_head_of_18_bytes)
{
	const struct rsb_frame frame = {
		.type = RSB_FRAME_STREAM,
		.flags = RSB_FRAME_FIN,
		.a = 0x0102030405060708,
		.b = 0x1112131415161718,
		.payload = rsb_bytes_str("xy"),
	};
	struct rsb_buf out = { .max = 0 };

	ck_assert_int_eq(rsb_frame_encode(&frame, NULL, &out), 0);
	ck_assert(bytes_equal(
		rsb_buf_view(&out), BYTES(9, 4, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14,
					    0x15, 0x16, 0x17, 0x18, 'x', 'y')));
	rsb_buf_done(&out);
}
END_TEST

START_TEST(brings_back_every_type)
{
	struct rsb_buf out = { .max = 0 };
	struct rsb_frame back;

	for (uint8_t type = RSB_FRAME_CHALLENGE; type <= RSB_FRAME_BYE; type++) {
		const struct rsb_frame frame = { .type = type, .a = type, .b = UINT64_MAX };

		rsb_buf_clear(&out);
		ck_assert_int_eq(rsb_frame_encode(&frame, NULL, &out), 0);
		ck_assert_int_eq(rsb_frame_decode(rsb_buf_view(&out), NULL, &back), 0);
		ck_assert_uint_eq(back.type, type);
		ck_assert_uint_eq(back.a, type);
		ck_assert_uint_eq(back.b, UINT64_MAX);
		ck_assert_uint_eq(back.payload.size, 0);
	}
	rsb_buf_done(&out);
}
END_TEST

START_TEST(refuses_every_truncation_of_a_head)
{
	struct rsb_frame frame = { .a = 77 };

	for (size_t size = 0; size < RSB_FRAME_HEAD; size++) {
		struct rsb_bytes cut = bytes_cut(head_of(RSB_FRAME_PING, 0), size);

		ck_assert_int_eq(rsb_frame_decode(cut, NULL, &frame), -EBADMSG);
		bytes_free(cut);
	}
	ck_assert_uint_eq(frame.a, 77);
}
END_TEST

START_TEST(tells_unknown_types_from_broken_frames)
{
	const uint8_t unknown[] = { 0, RSB_FRAME_BYE + 1, 100, 255 };
	struct rsb_frame frame;

	for (size_t i = 0; i < sizeof(unknown); i++)
		ck_assert_int_eq(
			rsb_frame_decode(head_of(unknown[i], 0xff), NULL, &frame), -EOPNOTSUPP);
}
END_TEST

START_TEST(refuses_flags_that_the_type_does_not_have)
{
	struct rsb_frame frame;

	for (uint8_t type = RSB_FRAME_CHALLENGE; type <= RSB_FRAME_BYE; type++) {
		const uint8_t legal = type == RSB_FRAME_MESSAGE  ? RSB_FRAME_MORE
				      : type == RSB_FRAME_STREAM ? RSB_FRAME_FIN
								 : 0;

		/* ZSTD needs a payload and is refused here always. */
		for (unsigned int flags = 0; flags < 256; flags++)
			ck_assert_int_eq(
				rsb_frame_decode(head_of(type, (uint8_t)flags), NULL, &frame),
				(flags & ~(unsigned int)legal) == 0 ? 0 : -EBADMSG);
	}
}
END_TEST

START_TEST(refuses_a_payload_where_none_belongs)
{
	const uint8_t bare[] = { RSB_FRAME_ACK, RSB_FRAME_PING, RSB_FRAME_PONG, RSB_FRAME_RESET,
		RSB_FRAME_BYE };
	uint8_t in[RSB_FRAME_HEAD + 1] = { 0 };
	struct rsb_frame frame;

	for (size_t i = 0; i < sizeof(bare); i++) {
		in[0] = bare[i];
		ck_assert_int_eq(
			rsb_frame_decode((struct rsb_bytes){ in, sizeof(in) }, NULL, &frame),
			-EBADMSG);
	}
}
END_TEST

START_TEST(keeps_to_the_maximum_both_ways)
{
	struct rsb_frame frame = {
		.type = RSB_FRAME_MESSAGE,
		.payload = { noise, RSB_FRAME_PAYLOAD_MAX + 1 },
	};
	struct rsb_buf out = { .max = 0 };
	struct rsb_frame back;
	uint8_t *tail;

	ck_assert_int_eq(rsb_frame_encode(&frame, NULL, &out), -EMSGSIZE);
	ck_assert_uint_eq(rsb_buf_len(&out), 0);
	frame.payload.size--;
	ck_assert_int_eq(rsb_frame_encode(&frame, NULL, &out), 0);
	ck_assert_uint_eq(rsb_buf_len(&out), RSB_FRAME_MAX);
	ck_assert_int_eq(rsb_frame_decode(rsb_buf_view(&out), NULL, &back), 0);
	ck_assert(bytes_equal(back.payload, frame.payload));

	ck_assert_int_eq(rsb_buf_reserve(&out, 1, &tail), 0);
	*tail = 0;
	rsb_buf_commit(&out, 1);
	ck_assert_int_eq(rsb_frame_decode(rsb_buf_view(&out), NULL, &back), -EBADMSG);
	rsb_buf_done(&out);

	out = (struct rsb_buf){ .max = RSB_FRAME_HEAD + 1 };
	frame.payload.size = 2;
	ck_assert_int_eq(rsb_frame_encode(&frame, NULL, &out), -EMSGSIZE);
	rsb_buf_done(&out);
}
END_TEST

/* Encodes with zip, decodes with another; returns whether it was compressed. */
static bool
round_trip(uint8_t type, struct rsb_bytes payload)
{
	const struct rsb_frame frame = { .type = type, .payload = payload };
	struct rsb_zip *zip = new_zip();
	struct rsb_zip *other = new_zip();
	struct rsb_buf out = { .max = 0 };
	struct rsb_frame back;
	bool zipped;

	/* Twice: contexts are made at the first and used again. */
	for (int i = 0; i < 2; i++) {
		rsb_buf_clear(&out);
		ck_assert_int_eq(rsb_frame_encode(&frame, zip, &out), 0);
		ck_assert_int_eq(rsb_frame_decode(rsb_buf_view(&out), other, &back), 0);
		ck_assert(bytes_equal(back.payload, payload));
		ck_assert_uint_eq(back.flags, 0);
		zipped = rsb_buf_head(&out)[1] & RSB_FRAME_ZSTD;
		if (zipped)
			ck_assert_uint_le(rsb_buf_len(&out) - RSB_FRAME_HEAD,
				payload.size - payload.size / 8);
	}
	rsb_buf_done(&out);
	rsb_zip_free(zip);
	rsb_zip_free(other);
	return zipped;
}

START_TEST(compresses_what_pays)
{
	ck_assert(round_trip(RSB_FRAME_STREAM, (struct rsb_bytes){ runs, RSB_ZSTD_MIN }));
	ck_assert(round_trip(RSB_FRAME_MESSAGE, (struct rsb_bytes){ runs, RSB_FRAME_PAYLOAD_MAX }));
	ck_assert(!round_trip(RSB_FRAME_STREAM, (struct rsb_bytes){ runs, RSB_ZSTD_MIN - 1 }));
	ck_assert(!round_trip(RSB_FRAME_STREAM, (struct rsb_bytes){ noise, RSB_ZSTD_MIN }));
	ck_assert(
		!round_trip(RSB_FRAME_MESSAGE, (struct rsb_bytes){ noise, RSB_FRAME_PAYLOAD_MAX }));
	ck_assert(!round_trip(RSB_FRAME_WELCOME, (struct rsb_bytes){ runs, RSB_ZSTD_MIN }));
}
END_TEST

START_TEST(goes_uncompressed_without_memory)
{
	const struct rsb_frame frame = { .type = RSB_FRAME_STREAM, .payload = { runs, 5000 } };
	struct rsb_zip *zip = new_zip();
	struct rsb_buf out = { .max = 0 };

	refuse.compressor = true;
	ck_assert_int_eq(rsb_frame_encode(&frame, zip, &out), 0);
	ck_assert_uint_eq(rsb_buf_len(&out), RSB_FRAME_HEAD + 5000);
	ck_assert_uint_eq(rsb_buf_head(&out)[1], 0);
	refuse.compressor = false;
	rsb_buf_done(&out);
	rsb_zip_free(zip);
}
END_TEST

/* A STREAM frame with ZSTD set around these bytes. */
static int
decode_zstd(struct rsb_zip *zip, struct rsb_bytes payload, size_t *ret_size)
{
	uint8_t *in = malloc(RSB_FRAME_HEAD + payload.size);
	struct rsb_frame frame;
	int r;

	ck_assert_ptr_nonnull(in);
	memset(in, 0, RSB_FRAME_HEAD);
	in[0] = RSB_FRAME_STREAM;
	in[1] = RSB_FRAME_ZSTD;
	if (payload.size > 0)
		memcpy(in + RSB_FRAME_HEAD, payload.data, payload.size);
	r = rsb_frame_decode((struct rsb_bytes){ in, RSB_FRAME_HEAD + payload.size }, zip, &frame);
	if (r == 0)
		*ret_size = frame.payload.size;
	free(in);
	return r;
}

/* zstd at its best: size zeros. Says so, unless silent. */
static size_t
bomb(uint8_t *out, size_t out_size, size_t size, bool silent)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	uint8_t *zeros = calloc(1, size);
	size_t n;

	ck_assert_ptr_nonnull(zeros);
	ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, !silent);
	n = ZSTD_compress2(c, out, out_size, zeros, size);
	ck_assert(!ZSTD_isError(n));
	free(zeros);
	ZSTD_freeCCtx(c);
	return n;
}

START_TEST(refuses_decompression_bombs)
{
	static uint8_t out[65000];
	struct rsb_zip *zip = new_zip();
	size_t n, size;

	n = bomb(out, sizeof(out), RSB_FRAME_MAX, false);
	ck_assert_int_eq(decode_zstd(zip, (struct rsb_bytes){ out, n }, &size), 0);
	ck_assert_uint_eq(size, RSB_FRAME_MAX);
	n = bomb(out, sizeof(out), RSB_FRAME_MAX + 1, false);
	ck_assert_int_eq(decode_zstd(zip, (struct rsb_bytes){ out, n }, &size), -EBADMSG);
	n = bomb(out, sizeof(out), (size_t)64 << 20, false);
	ck_assert_int_eq(decode_zstd(zip, (struct rsb_bytes){ out, n }, &size), -EBADMSG);
	/* No size declared. */
	n = bomb(out, sizeof(out), 2000, true);
	ck_assert_int_eq(decode_zstd(zip, (struct rsb_bytes){ out, n }, &size), -EBADMSG);
	rsb_zip_free(zip);
}
END_TEST

START_TEST(refuses_a_size_that_is_not_true)
{
	uint8_t out[5000];
	struct rsb_zip *zip = new_zip();
	size_t n, size;

	/*
	 * RFC 8878 3.1.1.1: magic, descriptor, then the size (2 bytes, less 256) in a single
	 * segment.
	 */
	n = bomb(out, sizeof(out), 2000, false);
	ck_assert_uint_eq(out[4] & 0xe0, 0x60);
	ck_assert_uint_eq(out[5] + 256u * out[6], 2000 - 256);
	ck_assert_int_eq(decode_zstd(zip, (struct rsb_bytes){ out, n }, &size), 0);
	out[5]++;
	ck_assert_int_eq(decode_zstd(zip, (struct rsb_bytes){ out, n }, &size), -EBADMSG);
	out[5] -= 2;
	ck_assert_int_eq(decode_zstd(zip, (struct rsb_bytes){ out, n }, &size), -EBADMSG);
	rsb_zip_free(zip);
}
END_TEST

START_TEST(refuses_anything_but_one_zstd_frame)
{
	const struct rsb_bytes skippable =
		BYTES(0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'a', 'b', 'c', 'd');
	struct rsb_zip *zip = new_zip();
	uint8_t out[5000];
	size_t n, size;

	n = bomb(out, 2500, 2000, false);
	ck_assert_int_eq(decode_zstd(zip, skippable, &size), -EBADMSG);
	ck_assert_int_eq(decode_zstd(zip, (struct rsb_bytes){ .size = 0 }, &size), -EBADMSG);
	ck_assert_int_eq(decode_zstd(zip, rsb_bytes_str("no zstd at all"), &size), -EBADMSG);
	for (size_t cut = 0; cut < n; cut++)
		ck_assert_int_eq(decode_zstd(zip, (struct rsb_bytes){ out, cut }, &size), -EBADMSG);
	memcpy(out + n, out, n);
	ck_assert_int_eq(decode_zstd(zip, (struct rsb_bytes){ out, 2 * n }, &size), -EBADMSG);
	memcpy(out + n, skippable.data, skippable.size);
	ck_assert_int_eq(
		decode_zstd(zip, (struct rsb_bytes){ out, n + skippable.size }, &size), -EBADMSG);
	ck_assert_int_eq(decode_zstd(NULL, (struct rsb_bytes){ out, n }, &size), -EBADMSG);
	rsb_zip_free(zip);
}
END_TEST

START_TEST(survives_every_flipped_bit)
{
	const struct rsb_frame frame = { .type = RSB_FRAME_STREAM, .payload = { runs, 3000 } };
	struct rsb_zip *zip = new_zip();
	struct rsb_buf out = { .max = 0 };
	struct rsb_frame back;

	ck_assert_int_eq(rsb_frame_encode(&frame, zip, &out), 0);
	for (size_t bit = 0; bit < 8 * rsb_buf_len(&out); bit++) {
		out.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (rsb_frame_decode(rsb_buf_view(&out), zip, &back) == 0)
			ck_assert_uint_le(back.payload.size, RSB_FRAME_MAX);
		out.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	rsb_buf_done(&out);
	rsb_zip_free(zip);
}
END_TEST

START_TEST(says_that_there_is_no_memory)
{
	uint8_t out[5000];
	size_t n = bomb(out, sizeof(out), 2000, false);
	struct rsb_bytes good = { out, n };
	struct rsb_zip *zip = NULL;
	uint8_t in[RSB_FRAME_HEAD + 100] = { RSB_FRAME_STREAM, RSB_FRAME_ZSTD };
	struct rsb_frame frame;
	size_t size;
	int r;

	refuse.calloc = true;
	r = rsb_zip_new(&zip);
	refuse.calloc = false;
	ck_assert_int_eq(r, -ENOMEM);
	ck_assert_ptr_null(zip);
	rsb_zip_free(NULL);

	zip = new_zip();
	ck_assert_uint_le(n, 100);
	memcpy(in + RSB_FRAME_HEAD, out, n);
	refuse.malloc = true;
	r = rsb_frame_decode((struct rsb_bytes){ in, RSB_FRAME_HEAD + n }, zip, &frame);
	refuse.malloc = false;
	ck_assert_int_eq(r, -ENOMEM);
	rsb_zip_free(zip);

	zip = new_zip();
	refuse.decompressor = true;
	ck_assert_int_eq(decode_zstd(zip, good, &size), -ENOMEM);
	refuse.decompressor = false;
	ck_assert_int_eq(decode_zstd(zip, good, &size), 0);
	rsb_zip_free(zip);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		has_a_big_endian_head_of_18_bytes,
		brings_back_every_type,
		refuses_every_truncation_of_a_head,
		tells_unknown_types_from_broken_frames,
		refuses_flags_that_the_type_does_not_have,
		refuses_a_payload_where_none_belongs,
		keeps_to_the_maximum_both_ways,
		compresses_what_pays,
		goes_uncompressed_without_memory,
		refuses_decompression_bombs,
		refuses_a_size_that_is_not_true,
		refuses_anything_but_one_zstd_frame,
		survives_every_flipped_bit,
		says_that_there_is_no_memory,
	};

	fill();
	return unit_run("frame", tests, RSB_ARRAY_SIZE(tests));
}
