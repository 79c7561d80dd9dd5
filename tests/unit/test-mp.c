/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "proto/mp.h"
#include "tests/unit/bytes.h"
#include "tests/unit/unit.h"

/* One value of every form that the format has. */
static const struct {
	struct rsb_bytes raw;
	enum { UNSIGNED, SIGNED, BYTES_, ARRAY, OTHER } is;
	uint64_t n; /* number, length or count */
} forms[] = {
	{ { (const uint8_t *)"\x00", 1 }, UNSIGNED, 0 },
	{ { (const uint8_t *)"\x7f", 1 }, UNSIGNED, 127 },
	{ { (const uint8_t *)"\xcc\xff", 2 }, UNSIGNED, 255 },
	{ { (const uint8_t *)"\xcd\x12\x34", 3 }, UNSIGNED, 0x1234 },
	{ { (const uint8_t *)"\xce\x12\x34\x56\x78", 5 }, UNSIGNED, 0x12345678 },
	{ { (const uint8_t *)"\xcf\x12\x34\x56\x78\x9a\xbc\xde\xf0", 9 }, UNSIGNED,
		0x123456789abcdef0 },
	{ { (const uint8_t *)"\xd0\x7f", 2 }, UNSIGNED, 127 },
	{ { (const uint8_t *)"\xd3\x7f\xff\xff\xff\xff\xff\xff\xff", 9 }, UNSIGNED, INT64_MAX },
	{ { (const uint8_t *)"\xff", 1 }, SIGNED, (uint64_t)-1 },
	{ { (const uint8_t *)"\xe0", 1 }, SIGNED, (uint64_t)-32 },
	{ { (const uint8_t *)"\xd0\x80", 2 }, SIGNED, (uint64_t)-128 },
	{ { (const uint8_t *)"\xd1\x80\x00", 3 }, SIGNED, (uint64_t)-32768 },
	{ { (const uint8_t *)"\xd2\xff\xff\xff\xfe", 5 }, SIGNED, (uint64_t)-2 },
	{ { (const uint8_t *)"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9 }, SIGNED,
		(uint64_t)INT64_MIN },
	{ { (const uint8_t *)"\xa0", 1 }, BYTES_, 0 },
	{ { (const uint8_t *)"\xa3"
			     "abc",
		  4 },
		BYTES_, 3 },
	{ { (const uint8_t *)"\xc4\x02zz", 4 }, BYTES_, 2 },
	{ { (const uint8_t *)"\xc5\x00\x02zz", 5 }, BYTES_, 2 },
	{ { (const uint8_t *)"\xc6\x00\x00\x00\x02zz", 7 }, BYTES_, 2 },
	{ { (const uint8_t *)"\xd9\x02zz", 4 }, BYTES_, 2 },
	{ { (const uint8_t *)"\xda\x00\x02zz", 5 }, BYTES_, 2 },
	{ { (const uint8_t *)"\xdb\x00\x00\x00\x02zz", 7 }, BYTES_, 2 },
	{ { (const uint8_t *)"\x90", 1 }, ARRAY, 0 },
	{ { (const uint8_t *)"\x92\x01\x02", 3 }, ARRAY, 2 },
	{ { (const uint8_t *)"\xdc\x00\x01\xc0", 4 }, ARRAY, 1 },
	{ { (const uint8_t *)"\xdd\x00\x00\x00\x01\xc3", 6 }, ARRAY, 1 },
	{ { (const uint8_t *)"\xc0", 1 }, OTHER, 0 },
	{ { (const uint8_t *)"\xc2", 1 }, OTHER, 0 },
	{ { (const uint8_t *)"\xc3", 1 }, OTHER, 0 },
	{ { (const uint8_t *)"\xca\x00\x00\x00\x00", 5 }, OTHER, 0 },
	{ { (const uint8_t *)"\xcb\x00\x00\x00\x00\x00\x00\x00\x00", 9 }, OTHER, 0 },
	{ { (const uint8_t *)"\x80", 1 }, OTHER, 0 },
	{ { (const uint8_t *)"\x81\x01\x02", 3 }, OTHER, 0 },
	{ { (const uint8_t *)"\xde\x00\x01\xa1k\x91\xc0", 7 }, OTHER, 0 },
	{ { (const uint8_t *)"\xdf\x00\x00\x00\x01\x01\x02", 7 }, OTHER, 0 },
	{ { (const uint8_t *)"\xd4\x05"
			     "a",
		  3 },
		OTHER, 0 },
	{ { (const uint8_t *)"\xd5\x05"
			     "ab",
		  4 },
		OTHER, 0 },
	{ { (const uint8_t *)"\xd6\x05"
			     "abcd",
		  6 },
		OTHER, 0 },
	{ { (const uint8_t *)"\xd7\x05"
			     "abcdefgh",
		  10 },
		OTHER, 0 },
	{ { (const uint8_t *)"\xd8\x05"
			     "abcdefghijklmnop",
		  18 },
		OTHER, 0 },
	{ { (const uint8_t *)"\xc7\x01\x05"
			     "a",
		  4 },
		OTHER, 0 },
	{ { (const uint8_t *)"\xc8\x00\x01\x05"
			     "a",
		  5 },
		OTHER, 0 },
	{ { (const uint8_t *)"\xc9\x00\x00\x00\x01\x05"
			     "a",
		  7 },
		OTHER, 0 },
};

START_TEST(reads_a_number_where_it_is_unsigned)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(forms); i++) {
		uint64_t value = 77;
		struct rsb_mp mp;
		int r;

		rsb_mp_init(&mp, forms[i].raw);
		r = rsb_mp_u64(&mp, &value);
		if (forms[i].is == UNSIGNED) {
			ck_assert_int_eq(r, 0);
			ck_assert_uint_eq(value, forms[i].n);
			ck_assert_uint_eq(rsb_mp_left(&mp), 0);
			continue;
		}
		ck_assert_msg(r == -EBADMSG, "form %zu", i);
		ck_assert_uint_eq(value, 77);
		ck_assert_ptr_eq(mp.pos, forms[i].raw.data);
	}
}
END_TEST

START_TEST(reads_a_signed_number_within_its_range)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(forms); i++) {
		int64_t value = 77;
		struct rsb_mp mp;
		int r;

		rsb_mp_init(&mp, forms[i].raw);
		r = rsb_mp_i64(&mp, &value);
		if (forms[i].is == UNSIGNED || forms[i].is == SIGNED) {
			ck_assert_int_eq(r, 0);
			ck_assert_int_eq(value, (int64_t)forms[i].n);
			continue;
		}
		ck_assert_msg(r == -EBADMSG, "form %zu", i);
		ck_assert_ptr_eq(mp.pos, forms[i].raw.data);
	}
}
END_TEST

START_TEST(refuses_an_unsigned_number_that_no_signed_one_holds)
{
	const struct rsb_bytes in = BYTES(0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0);
	int64_t value;
	struct rsb_mp mp;

	rsb_mp_init(&mp, in);
	ck_assert_int_eq(rsb_mp_i64(&mp, &value), -EBADMSG);
}
END_TEST

START_TEST(reads_str_and_bin_as_bytes)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(forms); i++) {
		struct rsb_bytes bytes = { .size = 77 };
		struct rsb_mp mp;
		int r;

		rsb_mp_init(&mp, forms[i].raw);
		r = rsb_mp_bytes(&mp, 3, &bytes);
		if (forms[i].is == BYTES_) {
			ck_assert_int_eq(r, 0);
			ck_assert_uint_eq(bytes.size, forms[i].n);
			ck_assert_ptr_eq(bytes.data + bytes.size, mp.end);
			continue;
		}
		ck_assert_msg(r == -EBADMSG, "form %zu", i);
		ck_assert_uint_eq(bytes.size, 77);
	}
}
END_TEST

START_TEST(refuses_bytes_over_the_maximum)
{
	const struct rsb_bytes in = BYTES(0xa3, 'a', 'b', 'c');
	struct rsb_bytes bytes;
	struct rsb_mp mp;

	rsb_mp_init(&mp, in);
	ck_assert_int_eq(rsb_mp_bytes(&mp, 2, &bytes), -EMSGSIZE);
	ck_assert_ptr_eq(mp.pos, in.data);
	ck_assert_int_eq(rsb_mp_bytes(&mp, 3, &bytes), 0);
}
END_TEST

START_TEST(reads_the_count_of_an_array)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(forms); i++) {
		struct rsb_mp mp;
		uint32_t n = 77;
		int r;

		rsb_mp_init(&mp, forms[i].raw);
		r = rsb_mp_array(&mp, &n);
		ck_assert_msg(r == (forms[i].is == ARRAY ? 0 : -EBADMSG), "form %zu", i);
		ck_assert_uint_eq(n, forms[i].is == ARRAY ? forms[i].n : 77);
	}
}
END_TEST

START_TEST(refuses_a_count_larger_than_the_input)
{
	const struct rsb_bytes cases[] = {
		BYTES(0xdd, 0x07, 0xff, 0xff, 0xff),
		BYTES(0xdc, 0x00, 0x03, 0x00, 0x00),
		BYTES(0x92, 0x00),
		BYTES(0xdf, 0xff, 0xff, 0xff, 0xff, 0x00),
		BYTES(0xde, 0x00, 0x02, 0x00, 0x00, 0x00),
		BYTES(0x81, 0x00),
		BYTES(0xdb, 0xff, 0xff, 0xff, 0xff, 0x00),
		BYTES(0xc9, 0xff, 0xff, 0xff, 0xff, 0x00),
	};
	struct rsb_bytes bytes;
	struct rsb_mp mp;
	uint32_t n;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(cases); i++) {
		struct rsb_bytes in = bytes_cut(cases[i], cases[i].size);

		rsb_mp_init(&mp, in);
		ck_assert_int_eq(rsb_mp_array(&mp, &n), -EBADMSG);
		ck_assert_int_eq(rsb_mp_bytes(&mp, SIZE_MAX, &bytes), -EBADMSG);
		ck_assert_int_eq(rsb_mp_skip(&mp), -EBADMSG);
		ck_assert_ptr_eq(mp.pos, in.data);
		bytes_free(in);
	}
}
END_TEST

START_TEST(refuses_every_truncation_of_a_value)
{
	struct rsb_bytes bytes;
	struct rsb_mp mp;
	uint64_t u64;
	int64_t i64;

	for (size_t i = 0; i < RSB_ARRAY_SIZE(forms); i++) {
		for (size_t size = 0; size < forms[i].raw.size; size++) {
			struct rsb_bytes in = bytes_cut(forms[i].raw, size);

			rsb_mp_init(&mp, in);
			ck_assert_int_eq(rsb_mp_u64(&mp, &u64), -EBADMSG);
			ck_assert_int_eq(rsb_mp_i64(&mp, &i64), -EBADMSG);
			ck_assert_int_eq(rsb_mp_bytes(&mp, SIZE_MAX, &bytes), -EBADMSG);
			ck_assert_int_eq(rsb_mp_skip(&mp), -EBADMSG);
			ck_assert_ptr_eq(mp.pos, in.data);
			bytes_free(in);
		}
	}
}
END_TEST

START_TEST(skips_one_value_of_any_form)
{
	for (size_t i = 0; i < RSB_ARRAY_SIZE(forms); i++) {
		uint8_t in[32];
		struct rsb_mp mp;

		memcpy(in, forms[i].raw.data, forms[i].raw.size);
		in[forms[i].raw.size] = 0x55;
		rsb_mp_init(&mp, (struct rsb_bytes){ in, forms[i].raw.size + 1 });
		ck_assert_msg(rsb_mp_skip(&mp) == 0, "form %zu", i);
		ck_assert_uint_eq(rsb_mp_left(&mp), 1);
	}
}
END_TEST

START_TEST(refuses_the_tag_that_is_never_used)
{
	struct rsb_mp mp;

	rsb_mp_init(&mp, BYTES(0xc1, 0x00));
	ck_assert_int_eq(rsb_mp_skip(&mp), -EBADMSG);
}
END_TEST

START_TEST(skips_down_to_the_maximal_depth_and_no_further)
{
	uint8_t in[RSB_MP_DEPTH_MAX + 2];
	struct rsb_mp mp;

	memset(in, 0x91, sizeof(in));
	in[RSB_MP_DEPTH_MAX] = 0x00;
	rsb_mp_init(&mp, (struct rsb_bytes){ in, RSB_MP_DEPTH_MAX + 1 });
	ck_assert_int_eq(rsb_mp_skip(&mp), 0);
	ck_assert_uint_eq(rsb_mp_left(&mp), 0);

	in[RSB_MP_DEPTH_MAX] = 0x91;
	in[RSB_MP_DEPTH_MAX + 1] = 0x00;
	rsb_mp_init(&mp, (struct rsb_bytes){ in, sizeof(in) });
	ck_assert_int_eq(rsb_mp_skip(&mp), -EBADMSG);
}
END_TEST

START_TEST(has_nothing_to_read_in_an_empty_input)
{
	struct rsb_mp mp;
	uint32_t n;

	rsb_mp_init(&mp, (struct rsb_bytes){ .data = NULL });
	ck_assert_uint_eq(rsb_mp_left(&mp), 0);
	ck_assert_int_eq(rsb_mp_array(&mp, &n), -EBADMSG);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		reads_a_number_where_it_is_unsigned,
		reads_a_signed_number_within_its_range,
		refuses_an_unsigned_number_that_no_signed_one_holds,
		reads_str_and_bin_as_bytes,
		refuses_bytes_over_the_maximum,
		reads_the_count_of_an_array,
		refuses_a_count_larger_than_the_input,
		refuses_every_truncation_of_a_value,
		skips_one_value_of_any_form,
		refuses_the_tag_that_is_never_used,
		skips_down_to_the_maximal_depth_and_no_further,
		has_nothing_to_read_in_an_empty_input,
	};

	return unit_run("mp", tests, RSB_ARRAY_SIZE(tests));
}
