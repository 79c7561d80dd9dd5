/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "proto/codec.h"
#include "proto/version.h"
#include "tests/unit/bytes.h"
#include "tests/unit/unit.h"

/* A message of our own with every kind, two of its fields younger than the first version. */
struct inner {
	struct rsb_bytes name;
	int64_t i64;
};

struct probe {
	uint64_t u64;
	struct inner rec;
	struct rsb_bytes bytes;
	struct rsb_seq seq;
	struct rsb_seq strs;
	uint64_t later;
	struct inner last;
};

static const struct rsb_field_desc inner_fields[] = {
	{ .name = "name",
		.kind = RSB_FIELD_NAME,
		.offset = offsetof(struct inner, name),
		.since = 1,
		.limit = 255 },
	{ .name = "i64", .kind = RSB_FIELD_I64, .offset = offsetof(struct inner, i64), .since = 1 },
};
static const struct rsb_message_desc inner_desc = {
	.name = "inner",
	.size = sizeof(struct inner),
	.n_field = RSB_ARRAY_SIZE(inner_fields),
	.fields = inner_fields,
};
static const struct rsb_field_desc probe_fields[] = {
	{ .name = "u64", .kind = RSB_FIELD_U64, .offset = offsetof(struct probe, u64), .since = 1 },
	{ .name = "rec",
		.kind = RSB_FIELD_REC,
		.offset = offsetof(struct probe, rec),
		.since = 1,
		.type = &inner_desc },
	{ .name = "bytes",
		.kind = RSB_FIELD_BYTES,
		.offset = offsetof(struct probe, bytes),
		.since = 1,
		.limit = 5 },
	{ .name = "seq",
		.kind = RSB_FIELD_SEQ,
		.offset = offsetof(struct probe, seq),
		.since = 1,
		.limit = 2,
		.type = &inner_desc },
	{ .name = "strs",
		.kind = RSB_FIELD_STRS,
		.offset = offsetof(struct probe, strs),
		.since = 1,
		.limit = 3,
		.each = 4 },
	{ .name = "later",
		.kind = RSB_FIELD_U64,
		.offset = offsetof(struct probe, later),
		.since = 2 },
	{ .name = "last",
		.kind = RSB_FIELD_REC,
		.offset = offsetof(struct probe, last),
		.since = 3,
		.type = &inner_desc },
};
static const struct rsb_message_desc probe_desc = {
	.name = "probe",
	.size = sizeof(struct probe),
	.n_field = RSB_ARRAY_SIZE(probe_fields),
	.fields = probe_fields,
};

static struct rsb_buf elements, strings;

/* A valid one; its lists live in elements and strings. */
static struct probe
sample(void)
{
	static const uint8_t bytes[] = { 0, 1, 2, 0xff };
	struct inner e = { .name = rsb_bytes_str("e"), .i64 = -1 };
	struct probe p = {
		.u64 = UINT64_MAX,
		.rec = { .name = rsb_bytes_str("file"), .i64 = INT64_MIN },
		.bytes = { bytes, sizeof(bytes) },
		.later = 300,
		.last = { .name = rsb_bytes_str("x"), .i64 = 7 },
	};

	rsb_buf_clear(&elements);
	rsb_buf_clear(&strings);
	ck_assert_int_eq(rsb_seq_append(&inner_desc, &e, 3, &elements), 0);
	ck_assert_int_eq(rsb_seq_append(&inner_desc, &e, 3, &elements), 0);
	ck_assert_int_eq(rsb_seq_append_bytes(rsb_bytes_str("ab"), &strings), 0);
	ck_assert_int_eq(rsb_seq_append_bytes((struct rsb_bytes){ .size = 0 }, &strings), 0);
	p.seq = rsb_seq_of(&elements, 2);
	p.strs = rsb_seq_of(&strings, 2);
	return p;
}

static struct rsb_bytes
encode(const struct rsb_message_desc *desc, const void *msg, uint32_t version)
{
	struct rsb_buf out = { .max = 0 };
	struct rsb_bytes copy;

	ck_assert_int_eq(rsb_codec_encode(desc, msg, version, &out), 0);
	copy = bytes_cut(rsb_buf_view(&out), rsb_buf_len(&out));
	rsb_buf_done(&out);
	return copy;
}

START_TEST(brings_back_every_kind_of_field)
{
	struct probe p = sample();
	struct rsb_bytes wire = encode(&probe_desc, &p, 3);
	struct rsb_bytes str;
	struct inner e;
	struct probe q;

	ck_assert_int_eq(rsb_codec_decode(&probe_desc, wire, &q), 0);
	ck_assert_uint_eq(q.u64, p.u64);
	ck_assert_int_eq(q.rec.i64, p.rec.i64);
	ck_assert(bytes_equal(q.rec.name, p.rec.name));
	ck_assert(bytes_equal(q.bytes, p.bytes));
	ck_assert_uint_eq(q.later, 300);
	ck_assert_int_eq(q.last.i64, 7);
	ck_assert_uint_eq(q.seq.n, 2);
	ck_assert_int_eq(rsb_seq_next(&q.seq, &inner_desc, &e), 1);
	ck_assert_int_eq(e.i64, -1);
	ck_assert_int_eq(rsb_seq_next(&q.seq, &inner_desc, &e), 1);
	ck_assert_int_eq(rsb_seq_next(&q.seq, &inner_desc, &e), 0);
	ck_assert_int_eq(rsb_seq_next_bytes(&q.strs, &str), 1);
	ck_assert(bytes_equal(str, rsb_bytes_str("ab")));
	ck_assert_int_eq(rsb_seq_next_bytes(&q.strs, &str), 1);
	ck_assert_uint_eq(str.size, 0);
	ck_assert_int_eq(rsb_seq_next_bytes(&q.strs, &str), 0);
	bytes_free(wire);
}
END_TEST

START_TEST(leaves_out_what_is_newer_than_the_version)
{
	struct probe p = sample();
	struct probe q;

	for (uint32_t version = 1; version <= 4; version++) {
		struct rsb_bytes wire = encode(&probe_desc, &p, version);

		ck_assert_uint_eq(wire.data[0], 0x90 + rsb_min(4 + version, 7u));
		ck_assert_int_eq(rsb_codec_decode(&probe_desc, wire, &q), 0);
		ck_assert_uint_eq(q.later, version >= 2 ? 300 : 0);
		ck_assert_uint_eq(q.last.name.size, version >= 3 ? 1 : 0);
		bytes_free(wire);
	}
}
END_TEST

START_TEST(takes_a_missing_tail_for_zero)
{
	struct rsb_spawn_req req;
	struct rsb_attr attr;

	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_attr, BYTES(0x92, 5, 6), &attr), 0);
	ck_assert_uint_eq(attr.ino, 5);
	ck_assert_uint_eq(attr.mode, 6);
	ck_assert_uint_eq(attr.nlink, 0);
	ck_assert_int_eq(attr.btime.sec, 0);
	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_spawn_req, BYTES(0x91, 9), &req), 0);
	ck_assert_uint_eq(req.argv.n, 0);
	ck_assert_uint_eq(req.cwd.size, 0);
}
END_TEST

START_TEST(refuses_a_message_without_its_name)
{
	const struct rsb_bytes no_name = BYTES(0x91, 0x93, 1, 0, 0x92, 0, 0);
	const struct rsb_bytes no_rec = BYTES(0x91, 1);
	struct rsb_lookup_req req;
	struct probe p;

	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_lookup_req, no_name, &req), -EINVAL);
	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_lookup_req, BYTES(0x90), &req), -EINVAL);
	/* A part that has a name is missing. */
	ck_assert_int_eq(rsb_codec_decode(&probe_desc, no_rec, &p), -EINVAL);
}
END_TEST

START_TEST(skips_an_unknown_tail)
{
	struct rsb_fh_req req;

	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_fh_req,
				 BYTES(0x94, 7, 0x81, 0xa1, 'k', 0xc3, 0x92, 1, 2, 0xc0), &req),
		0);
	ck_assert_uint_eq(req.fh, 7);
	ck_assert_int_eq(
		rsb_codec_decode(&rsb_desc_rsb_fh_req, BYTES(0x92, 7, 0xc1), &req), -EBADMSG);
	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_empty, BYTES(0x91, 7), &req), 0);
}
END_TEST

START_TEST(refuses_every_truncation_of_a_message)
{
	struct probe p = sample();
	struct rsb_bytes wire = encode(&probe_desc, &p, 3);
	struct probe q;

	for (size_t size = 0; size < wire.size; size++) {
		struct rsb_bytes cut = bytes_cut(wire, size);

		ck_assert_int_lt(rsb_codec_decode(&probe_desc, cut, &q), 0);
		ck_assert_uint_eq(q.u64, 0);
		ck_assert_ptr_null(q.rec.name.data);
		bytes_free(cut);
	}
	bytes_free(wire);
}
END_TEST

START_TEST(refuses_bytes_after_the_message)
{
	struct rsb_fh_req req;

	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_fh_req, BYTES(0x91, 7, 0), &req), -EBADMSG);
	ck_assert_uint_eq(req.fh, 0);
}
END_TEST

START_TEST(refuses_another_type_than_the_table_says)
{
	const struct rsb_bytes cases[] = {
		BYTES(0x81, 1, 2),                          /* no array */
		BYTES(0x91, 0xff),                          /* u64 */
		BYTES(0x92, 1, 1),                          /* rec */
		BYTES(0x92, 1, 0x92, 1, 1),                 /* name */
		BYTES(0x92, 1, 0x92, 0xa1, 'x', 0xa1, 'x'), /* i64 */
		BYTES(0x93, 1, 0x91, 0xa1, 'x', 1),         /* bytes */
		BYTES(0x94, 1, 0x91, 0xa1, 'x', 0xa0, 1),   /* seq */
		BYTES(0x94, 1, 0x91, 0xa1, 'x', 0xa0, 0x91, 1),
		BYTES(0x95, 1, 0x91, 0xa1, 'x', 0xa0, 0x90, 1), /* strs */
		BYTES(0x95, 1, 0x91, 0xa1, 'x', 0xa0, 0x90, 0x91, 1),
	};
	struct probe p;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++)
		ck_assert_msg(
			rsb_codec_decode(&probe_desc, cases[i], &p) == -EBADMSG, "case %zu", i);
}
END_TEST

START_TEST(refuses_what_is_over_its_limit)
{
	const struct rsb_bytes cases[] = {
		BYTES(0x93, 1, 0x91, 0xa1, 'x', 0xa6, 1, 2, 3, 4, 5, 6),
		BYTES(0x94, 1, 0x91, 0xa1, 'x', 0xa0, 0x93, 0x91, 0xa1, 'x', 0x91, 0xa1, 'x', 0x91,
			0xa1, 'x'),
		BYTES(0x95, 1, 0x91, 0xa1, 'x', 0xa0, 0x90, 0x94, 0xa0, 0xa0, 0xa0, 0xa0),
		BYTES(0x95, 1, 0x91, 0xa1, 'x', 0xa0, 0x90, 0x91, 0xa5, 1, 2, 3, 4, 5),
	};
	struct probe p;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++)
		ck_assert_msg(
			rsb_codec_decode(&probe_desc, cases[i], &p) == -EMSGSIZE, "case %zu", i);
}
END_TEST

START_TEST(refuses_a_count_larger_than_the_frame)
{
	struct rsb_forget_req req;

	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_forget_req,
				 BYTES(0x91, 0xdd, 0x07, 0xff, 0xff, 0xff), &req),
		-EBADMSG);
	ck_assert_int_eq(rsb_codec_decode(&rsb_desc_rsb_forget_req,
				 BYTES(0xdd, 0x07, 0xff, 0xff, 0xff), &req),
		-EBADMSG);
}
END_TEST

static const struct {
	const char *data;
	size_t size;
} bad_names[] = { { "", 0 }, { ".", 1 }, { "..", 2 }, { "a/b", 3 }, { "/", 1 }, { "a\0b", 3 },
	{ "\0", 1 } };

START_TEST(refuses_bad_names_both_ways)
{
	struct rsb_buf out = { .max = 0 };
	char longest[256];
	struct inner e;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(bad_names); i++) {
		uint8_t wire[8] = { 0x91, (uint8_t)(0xa0 + bad_names[i].size) };

		memcpy(wire + 2, bad_names[i].data, bad_names[i].size);
		e.name =
			(struct rsb_bytes){ (const uint8_t *)bad_names[i].data, bad_names[i].size };
		ck_assert_int_eq(rsb_codec_encode(&inner_desc, &e, 1, &out), -EINVAL);
		ck_assert_int_eq(rsb_codec_decode(&inner_desc,
					 (struct rsb_bytes){ wire, 2 + bad_names[i].size }, &e),
			-EINVAL);
	}
	memset(longest, 'n', sizeof(longest));
	e.name = (struct rsb_bytes){ (const uint8_t *)longest, 256 };
	ck_assert_int_eq(rsb_codec_encode(&inner_desc, &e, 1, &out), -EINVAL);
	e.name.size = 255;
	ck_assert_int_eq(rsb_codec_encode(&inner_desc, &e, 1, &out), 0);
	ck_assert_int_eq(rsb_codec_decode(&inner_desc, rsb_buf_view(&out), &e), 0);
	ck_assert_uint_eq(e.name.size, 255);
	rsb_buf_done(&out);
}
END_TEST

START_TEST(refuses_a_name_of_256_bytes)
{
	uint8_t wire[4 + 256];
	struct inner e;

	memset(wire, 'n', sizeof(wire));
	memcpy(wire, "\x91\xc5\x01\x00", 4);
	ck_assert_int_eq(
		rsb_codec_decode(&inner_desc, (struct rsb_bytes){ wire, sizeof(wire) }, &e),
		-EMSGSIZE);
}
END_TEST

START_TEST(refuses_a_nul_in_a_list_of_strings)
{
	struct rsb_buf out = { .max = 0 };
	struct probe p;

	ck_assert_int_eq(
		rsb_codec_decode(&probe_desc,
			BYTES(0x95, 1, 0x91, 0xa1, 'x', 0xa0, 0x90, 0x91, 0xa2, 'a', 0), &p),
		-EINVAL);
	ck_assert_int_eq(rsb_seq_append_bytes(BYTES('a', 0), &out), -EINVAL);
	ck_assert_uint_eq(rsb_buf_len(&out), 0);
}
END_TEST

START_TEST(does_not_encode_what_is_over_its_limit)
{
	struct rsb_buf out = { .max = 0 };
	struct probe p = sample();

	p.bytes.size = 6;
	ck_assert_int_eq(rsb_codec_encode(&probe_desc, &p, 1, &out), -EINVAL);
	p = sample();
	p.seq.n = 3;
	ck_assert_int_eq(rsb_codec_encode(&probe_desc, &p, 1, &out), -EINVAL);
	p = sample();
	p.strs.n = 4;
	ck_assert_int_eq(rsb_codec_encode(&probe_desc, &p, 1, &out), -EINVAL);
	ck_assert_int_eq(rsb_codec_encode(&probe_desc, NULL, 1, &out), -EINVAL);
	ck_assert_uint_eq(rsb_buf_len(&out), 0);
	rsb_buf_done(&out);
}
END_TEST

START_TEST(leaves_the_buffer_alone_when_it_is_too_small)
{
	struct probe p = sample();
	struct rsb_bytes wire = encode(&probe_desc, &p, 3);

	for (size_t max = 1; max <= wire.size; max++) {
		struct rsb_buf out = { .max = 4 + max };

		ck_assert_int_eq(rsb_buf_append(&out, "zabc", 4), 0);
		ck_assert_int_eq(rsb_codec_encode(&probe_desc, &p, 3, &out),
			max < wire.size ? -EMSGSIZE : 0);
		ck_assert_uint_eq(rsb_buf_len(&out), max < wire.size ? 4 : 4 + wire.size);
		rsb_buf_done(&out);
	}
	bytes_free(wire);
}
END_TEST

START_TEST(walks_only_over_valid_lists)
{
	const struct rsb_bytes bad = BYTES(0x91, 1, 0x91);
	struct rsb_seq seq = { .n = 2, .raw = bad };
	struct rsb_fh_req fh;
	struct rsb_bytes str;

	ck_assert_int_eq(rsb_seq_next(&seq, &rsb_desc_rsb_fh_req, &fh), 1);
	ck_assert_uint_eq(fh.fh, 1);
	ck_assert_int_eq(rsb_seq_next(&seq, &rsb_desc_rsb_fh_req, &fh), -EBADMSG);

	seq = (struct rsb_seq){ .n = 1, .raw = BYTES(0xa1) };
	ck_assert_int_eq(rsb_seq_next_bytes(&seq, &str), -EBADMSG);
	/* More bytes than elements. */
	seq = (struct rsb_seq){ .n = 0, .raw = BYTES(0xa0) };
	ck_assert_int_eq(rsb_seq_next_bytes(&seq, &str), -EBADMSG);
	ck_assert_int_eq(rsb_seq_next(&seq, &rsb_desc_rsb_fh_req, &fh), -EBADMSG);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		brings_back_every_kind_of_field,
		leaves_out_what_is_newer_than_the_version,
		takes_a_missing_tail_for_zero,
		refuses_a_message_without_its_name,
		skips_an_unknown_tail,
		refuses_every_truncation_of_a_message,
		refuses_bytes_after_the_message,
		refuses_another_type_than_the_table_says,
		refuses_what_is_over_its_limit,
		refuses_a_count_larger_than_the_frame,
		refuses_bad_names_both_ways,
		refuses_a_name_of_256_bytes,
		refuses_a_nul_in_a_list_of_strings,
		does_not_encode_what_is_over_its_limit,
		leaves_the_buffer_alone_when_it_is_too_small,
		walks_only_over_valid_lists,
	};
	int r = unit_run("codec", tests, RSB_ARRAY_SIZE(tests));

	rsb_buf_done(&elements);
	rsb_buf_done(&strings);
	return r;
}
