/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "util/buf.h"

START_TEST(starts_empty_and_without_storage)
{
	struct rsb_buf buf;

	rsb_buf_init(&buf, 0);
	ck_assert_uint_eq(rsb_buf_len(&buf), 0);
	ck_assert_ptr_null(rsb_buf_head(&buf));
	rsb_buf_done(&buf);
	rsb_buf_done(NULL);
}
END_TEST

START_TEST(appends_up_to_the_maximum_and_not_beyond)
{
	struct rsb_buf buf;
	uint8_t *tail;

	rsb_buf_init(&buf, 10);
	ck_assert_int_eq(rsb_buf_append(&buf, "0123456789", 10), 0);
	ck_assert_int_eq(rsb_buf_append(&buf, "x", 1), -EMSGSIZE);
	ck_assert_int_eq(rsb_buf_reserve(&buf, SIZE_MAX, &tail), -EMSGSIZE);
	ck_assert_int_eq(rsb_buf_append(&buf, NULL, 0), 0);
	ck_assert_uint_eq(rsb_buf_len(&buf), 10);
	ck_assert_mem_eq(rsb_buf_head(&buf), "0123456789", 10);
	rsb_buf_done(&buf);
}
END_TEST

START_TEST(takes_the_maximum_again_after_the_head_was_consumed)
{
	struct rsb_buf buf;

	rsb_buf_init(&buf, 10);
	ck_assert_int_eq(rsb_buf_append(&buf, "0123456789", 10), 0);
	rsb_buf_consume(&buf, 4);
	ck_assert_int_eq(rsb_buf_append(&buf, "abcd", 4), 0);
	ck_assert_int_eq(rsb_buf_append(&buf, "e", 1), -EMSGSIZE);
	ck_assert_mem_eq(rsb_buf_head(&buf), "456789abcd", 10);
	rsb_buf_done(&buf);
}
END_TEST

START_TEST(keeps_indexes_true_while_it_grows)
{
	struct rsb_buf buf;
	uint8_t block[1000];
	size_t at;
	int i;

	rsb_buf_init(&buf, 0);
	ck_assert_int_eq(rsb_buf_append(&buf, "ab", 2), 0);
	rsb_buf_consume(&buf, 1);
	at = buf.size;
	ck_assert_int_eq(rsb_buf_append(&buf, "?", 1), 0);
	memset(block, 'x', sizeof(block));
	for (i = 0; i < 100; i++)
		ck_assert_int_eq(rsb_buf_append(&buf, block, sizeof(block)), 0);
	buf.data[at] = '!';
	ck_assert_mem_eq(rsb_buf_head(&buf), "b!x", 3);
	rsb_buf_done(&buf);
}
END_TEST

START_TEST(reuses_its_storage_as_a_stream)
{
	struct rsb_buf buf;
	uint8_t expect = 0;
	uint8_t next = 0;
	int i, j;

	rsb_buf_init(&buf, 20000);
	for (i = 0; i < 1000; i++) {
		for (j = 0; j < 700; j++, next++)
			if (rsb_buf_append(&buf, &next, 1) < 0)
				ck_abort_msg("append failed in round %d", i);
		for (; rsb_buf_len(&buf) > 5000; expect++) {
			if (*rsb_buf_head(&buf) != expect)
				ck_abort_msg("another byte in round %d", i);
			rsb_buf_consume(&buf, 1);
		}
	}
	ck_assert_uint_le(buf.cap, 45000);
	rsb_buf_done(&buf);
}
END_TEST

START_TEST(grows_seldom_while_it_stays_full)
{
	const size_t max = 1 << 20, piece = 1 << 12;
	struct rsb_buf buf;
	uint8_t block[1 << 12] = { 0 };
	size_t n_grown = 0;

	rsb_buf_init(&buf, max);
	while (rsb_buf_len(&buf) < max)
		ck_assert_int_eq(rsb_buf_append(&buf, block, piece), 0);
	for (int i = 0; i < 1000; i++) {
		size_t cap = buf.cap;

		rsb_buf_consume(&buf, piece);
		ck_assert_int_eq(rsb_buf_append(&buf, block, piece), 0);
		n_grown += buf.cap != cap;
	}
	ck_assert_uint_le(n_grown, 2);
	ck_assert_uint_le(buf.cap, 2 * max + 4096);
	rsb_buf_done(&buf);
}
END_TEST

START_TEST(counts_only_what_was_committed)
{
	struct rsb_buf buf;
	uint8_t *tail;

	rsb_buf_init(&buf, 0);
	ck_assert_int_eq(rsb_buf_reserve(&buf, 100, &tail), 0);
	memcpy(tail, "abc", 3);
	rsb_buf_commit(&buf, 3);
	ck_assert_uint_eq(rsb_buf_view(&buf).size, 3);
	ck_assert_mem_eq(rsb_buf_view(&buf).data, "abc", 3);
	rsb_buf_done(&buf);
}
END_TEST

START_TEST(prints_exactly_to_its_maximum)
{
	struct rsb_buf buf;

	rsb_buf_init(&buf, 8);
	ck_assert_int_eq(rsb_buf_printf(&buf, "%s-%d", "ab", 12345), 0);
	ck_assert_int_eq(rsb_buf_printf(&buf, "%d", 6), -EMSGSIZE);
	ck_assert_int_eq(rsb_buf_printf(&buf, "%s", ""), 0);
	ck_assert_uint_eq(rsb_buf_len(&buf), 8);
	ck_assert_mem_eq(rsb_buf_head(&buf), "ab-12345", 8);
	rsb_buf_done(&buf);
}
END_TEST

START_TEST(gives_its_contents_away_as_a_string)
{
	struct rsb_buf buf;
	char *s;

	rsb_buf_init(&buf, 6);
	s = rsb_buf_steal_str(&buf);
	ck_assert_str_eq(s, "");
	free(s);
	ck_assert_int_eq(rsb_buf_append(&buf, "abcdef", 6), 0);
	rsb_buf_consume(&buf, 2);
	s = rsb_buf_steal_str(&buf);
	ck_assert_str_eq(s, "cdef");
	free(s);
	ck_assert_uint_eq(rsb_buf_len(&buf), 0);
	ck_assert_int_eq(rsb_buf_append(&buf, "123456", 6), 0);
	rsb_buf_clear(&buf);
	ck_assert_uint_eq(rsb_buf_len(&buf), 0);
	ck_assert_int_eq(rsb_buf_append(&buf, "123456", 6), 0);
	rsb_buf_done(&buf);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		starts_empty_and_without_storage,
		appends_up_to_the_maximum_and_not_beyond,
		takes_the_maximum_again_after_the_head_was_consumed,
		keeps_indexes_true_while_it_grows,
		reuses_its_storage_as_a_stream,
		grows_seldom_while_it_stays_full,
		counts_only_what_was_committed,
		prints_exactly_to_its_maximum,
		gives_its_contents_away_as_a_string,
	};

	return unit_run("buf", tests, RSB_ARRAY_SIZE(tests));
}
